#include "vgpu/control/channel.h"

#include <capnp/serialize.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/function.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>

#include "vgpu/control/control.capnp.h"

namespace vgpu {
namespace {

struct Pair {
  kj::AutoCloseFd raw;  // the peer's end, for bytes that no channel would send
  ControlChannel channel;

  static Pair make(int wake = -1) {
    int ends[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {kj::AutoCloseFd(ends[0]), ControlChannel(kj::AutoCloseFd(ends[1]), wake)};
  }
};

kj::Array<capnp::word> messageSaying(const std::string& text) {
  capnp::MallocMessageBuilder builder;
  builder.initRoot<control::ToNode>().setRefused(text.c_str());
  return capnp::messageToFlatArray(builder);
}

void put(int fd, kj::ArrayPtr<const kj::byte> bytes) {
  REQUIRE(write(fd, bytes.begin(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
}

// Sends a message with `count` descriptors of the file `path`.
void putWithDescriptors(ControlChannel& channel, const std::string& text, const char* path, size_t count) {
  capnp::MallocMessageBuilder builder;
  builder.initRoot<control::ToNode>().setRefused(text.c_str());
  kj::AutoCloseFd file(open(path, O_RDONLY | O_CLOEXEC));
  auto descriptors = kj::heapArray<int>(count);
  std::fill(descriptors.begin(), descriptors.end(), file.get());
  channel.send(builder, descriptors);
}

std::string textOf(const ControlMessage& message) {
  return const_cast<capnp::MessageReader&>(*message.reader).getRoot<control::ToNode>().getRefused().cStr();
}

size_t openDescriptors() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

kj::Exception::Type failureOf(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getType();
  }
  FAIL("nothing was thrown");
  return kj::Exception::Type::UNIMPLEMENTED;
}

}  // namespace

TEST_CASE("messages arrive whole, each with its own descriptors") {
  Pair pair = Pair::make();
  ControlChannel sender(kj::mv(pair.raw));
  putWithDescriptors(sender, "first", "/dev/null", 2);
  putWithDescriptors(sender, "second", "/dev/zero", 1);
  putWithDescriptors(sender, "third", "/dev/null", 0);
  auto first = pair.channel.receive(2), second = pair.channel.receive(2), third = pair.channel.receive(2);
  CHECK(textOf(*first) == "first");
  CHECK(textOf(*second) == "second");
  CHECK(textOf(*third) == "third");
  CHECK(first->descriptors.size() == 2);
  CHECK(third->descriptors.empty());
  REQUIRE(second->descriptors.size() == 1);
  CHECK(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(second->descriptors[0].get())) == "/dev/zero");
  CHECK((fcntl(second->descriptors[0], F_GETFD) & FD_CLOEXEC) != 0);
}

TEST_CASE("unexpected descriptors are closed") {
  Pair pair = Pair::make();
  ControlChannel sender(kj::mv(pair.raw));
  size_t before = openDescriptors();
  putWithDescriptors(sender, "many", "/dev/null", ControlChannel::mostDescriptors);
  auto message = pair.channel.receive(1);
  CHECK(message->descriptors.size() == 1);
  CHECK(openDescriptors() == before + 1);
}

TEST_CASE("a message that arrives byte by byte is the same message") {
  Pair pair = Pair::make();
  std::thread writer([&] {
    auto words = messageSaying("slow");
    for (kj::byte byte : words.asBytes()) put(pair.raw, kj::arrayPtr(&byte, 1));
  });
  auto message = pair.channel.receive();
  writer.join();
  CHECK(textOf(*message) == "slow");
}

TEST_CASE("the end of a connection between messages is no error; within a message it is one") {
  Pair whole = Pair::make();
  put(whole.raw, messageSaying("last").asBytes());
  whole.raw = nullptr;
  CHECK(textOf(*whole.channel.receive()) == "last");
  CHECK(!whole.channel.receive());

  auto words = messageSaying("cut");
  for (size_t length : {size_t{1}, size_t{8}, words.asBytes().size() - 1}) {
    Pair cut = Pair::make();
    put(cut.raw, words.asBytes().slice(0, length));
    cut.raw = nullptr;
    CHECK(failureOf([&] { cut.channel.receive(); }) == kj::Exception::Type::DISCONNECTED);
  }
}

TEST_CASE("an invalid message is refused before its bytes are awaited") {
  struct {
    uint32_t table[4];
  } headers[] = {
      {{0xffffffff, 0xffffffff, 0, 0}},  // four thousand million segments
      {{64, 0, 0, 0}},                   // one more than any of vgpu's messages has
      {{0, 0x7fffffff, 0, 0}},           // sixteen gigabytes
      {{1, 0x80000000, 0x80000000, 0}},  // a sum that wraps in 32 bits
  };
  for (auto& header : headers) {
    Pair pair = Pair::make();
    put(pair.raw, kj::arrayPtr(header.table, 4).asBytes());
    CHECK(failureOf([&] { pair.channel.receive(); }) == kj::Exception::Type::FAILED);
  }
}

TEST_CASE("a peer that sends nothing in time is given up") {
  Pair pair = Pair::make();
  CHECK(failureOf([&] { pair.channel.receive(0, std::chrono::steady_clock::now()); }) ==
        kj::Exception::Type::OVERLOADED);
}

TEST_CASE("a blocked call ends when the channel is woken") {
  kj::AutoCloseFd wake(eventfd(0, EFD_CLOEXEC));
  Pair pair = Pair::make(wake);
  std::thread waker([&] { eventfd_write(wake, 1); });
  CHECK(failureOf([&] { pair.channel.receive(); }) == kj::Exception::Type::DISCONNECTED);
  waker.join();
}

TEST_CASE("sending to a closed connection is an error and raises no signal") {
  Pair pair = Pair::make();
  pair.raw = nullptr;
  capnp::MallocMessageBuilder builder;
  builder.initRoot<control::ToNode>().setMoved();
  CHECK(failureOf([&] { pair.channel.send(builder); }) == kj::Exception::Type::DISCONNECTED);
}

TEST_CASE("a message larger than a peer would accept is not sent") {
  Pair pair = Pair::make();
  capnp::MallocMessageBuilder builder;
  std::string text(ControlChannel::mostBytes, 'x');
  builder.initRoot<control::ToNode>().setRefused(text.c_str());
  CHECK(failureOf([&] { pair.channel.send(builder); }) == kj::Exception::Type::FAILED);
}

TEST_CASE("sending waits for a peer that reads slowly") {
  Pair pair = Pair::make();
  ControlChannel sender(kj::mv(pair.raw));
  std::string text(ControlChannel::mostBytes / 2, 'x');
  constexpr int count = 20;  // more than a socket's buffer holds
  std::thread writer([&] {
    for (int i = 0; i < count; ++i) putWithDescriptors(sender, text, "/dev/null", 0);
  });
  for (int i = 0; i < count; ++i) CHECK(textOf(*pair.channel.receive()) == text);
  writer.join();
}

}  // namespace vgpu
