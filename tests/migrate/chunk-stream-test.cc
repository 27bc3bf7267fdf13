#include "migrate/chunk-stream.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <kj/function.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

using namespace vgpu;
using namespace vgpu::migrate;

namespace {

struct Ends {
  Ends() {
    int fds[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
    from = kj::AutoCloseFd(fds[0]);
    to = kj::AutoCloseFd(fds[1]);
  }
  kj::AutoCloseFd from, to;
};

std::string errorOf(kj::FunctionParam<void()> work) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { work(); })) return exception->getDescription().cStr();
  return "";
}

}  // namespace

TEST_CASE("chunks arrive in order with all their bytes, and the reply to a flush follows them") {
  Ends ends;
  ChunkStream source(kj::mv(ends.from)), target(kj::mv(ends.to));
  std::vector<std::byte> bytes(3 << 20);  // more than a socket's buffer holds
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(i * 7 >> 3);
  std::vector<std::byte> received(bytes.size());
  bool flushed = false;
  std::thread reader([&] {
    ChunkMessage first = target.receive();
    CHECK(first.kind == MessageKind::lease);
    CHECK(first.address == 0x200000000000);
    ChunkMessage chunk = target.receive();
    CHECK(chunk.kind == MessageKind::chunk);
    CHECK(chunk.bytes == bytes.size());
    CHECK(chunk.digest == Digest{5, 6});
    target.receive(received);
    ChunkMessage flush = target.receive();
    CHECK(flush.kind == MessageKind::flush);
    flushed = true;
    target.send(flush);
  });
  source.send({MessageKind::lease, 0, 0x200000000000, 4 << 20, {}});
  source.send({MessageKind::chunk, 1, 0x200000000000, bytes.size(), {5, 6}}, bytes);
  source.flush();
  CHECK(flushed);
  reader.join();
  CHECK(received == bytes);
}

TEST_CASE("a stream that ends within a message is an error, on both sides") {
  Ends ends;
  KJ_SYSCALL(write(ends.from, "half a message", 14));
  ends.from = nullptr;
  ChunkStream target(kj::mv(ends.to));
  CHECK(errorOf([&] { target.receive(); }) == "the source of the migration has closed the stream of memory");

  Ends other;
  other.to = nullptr;
  ChunkStream source(kj::mv(other.from));
  CHECK(errorOf([&] { source.send({}); }).starts_with("the target of the migration accepts no more memory"));
}

TEST_CASE("an unexpected reply to a flush is an error") {
  Ends ends;
  ChunkStream source(kj::mv(ends.from)), target(kj::mv(ends.to));
  target.send({MessageKind::zeros, 0, 0, 0, {}});
  CHECK(errorOf([&] { source.flush(); }) == "the target of the migration answered a flush with another kind of message");
}

TEST_CASE("a target that refuses gives its reason, to a source that sends and to one that waits") {
  Ends ends;
  ChunkStream source(kj::mv(ends.from)), target(kj::mv(ends.to));
  target.refuse("no memory");
  CHECK(errorOf([&] { source.flush(); }) == "no memory");

  Ends other;
  ChunkStream sender(kj::mv(other.from)), receiver(kj::mv(other.to));
  receiver.refuse("no memory");
  receiver.endReceiving();
  CHECK(errorOf([&] { sender.send({}); }) == "no memory");
}

// As with vgpu-relay between hosts.
TEST_CASE("a target that refuses ends the wait for room in a full stream") {
  Ends ends;
  const std::vector<std::byte> many(64 << 10);
  while (send(ends.from, many.data(), many.size(), MSG_DONTWAIT) > 0) {
  }
  ChunkStream target(kj::mv(ends.to));
  target.refuse("no memory");
  pollfd polled{ends.from, POLLOUT, 0};
  CHECK(poll(&polled, 1, 10'000) == 1);
  ChunkStream source(kj::mv(ends.from));
  CHECK(errorOf([&] { source.send({}); }) == "no memory");
}

TEST_CASE("shutting down a stream wakes a thread that waits for it") {
  Ends ends;
  ChunkStream target(kj::mv(ends.to));
  std::string error;
  std::thread reader([&] { error = errorOf([&] { target.receive(); }); });
  target.shutDown();
  reader.join();
  CHECK(error != "");
}
