// Which bytes are passed on between two connections when one of them ends.
#include "tools/relay/splice.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>

namespace vgpu::relay {
namespace {

// One spliced connection, and its peer.
struct SplicedEnd {
  kj::AutoCloseFd peer;
  PlainStream stream;
  SplicedEnd() : SplicedEnd(makeEnds()) {}

  void says(const std::string& text) { REQUIRE(send(peer, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size())); }
  // Reads until the stream ends.
  std::string hears() {
    std::string all;
    char piece[4096];
    for (ssize_t got; (got = recv(peer, piece, sizeof piece, 0)) > 0;) all.append(piece, static_cast<size_t>(got));
    return all;
  }
  void end() { shutdown(stream.fd(), SHUT_RDWR); }

 private:
  struct Ends {
    kj::AutoCloseFd peer, own;
  };
  static Ends makeEnds() {
    int ends[2];
    KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
    return {kj::AutoCloseFd(ends[0]), kj::AutoCloseFd(ends[1])};
  }
  explicit SplicedEnd(Ends ends) : peer(kj::mv(ends.peer)), stream(kj::mv(ends.own)) {}
};

TEST_CASE("bytes that were sent before a connection ended are passed on") {
  SplicedEnd tool, node;
  tool.says("asked");
  node.says("replied");
  shutdown(tool.peer, SHUT_WR);
  shutdown(node.peer, SHUT_WR);
  splice(tool.stream, node.stream);
  tool.end();
  node.end();
  CHECK(node.hears() == "asked");
  CHECK(tool.hears() == "replied");
}

TEST_CASE("a side that accepts nothing more can still send its reason, also later") {
  SplicedEnd tool, node;
  shutdown(node.peer, SHUT_RD);
  tool.says("more");
  auto spliced = [&] {
    splice(tool.stream, node.stream);
    tool.end();
  };
  std::thread thread;
  SUBCASE("at once") {
    node.says("refused");
    node.peer = nullptr;
    thread = std::thread(spliced);
  }
  SUBCASE("when the bytes for it have been dropped") {
    thread = std::thread(spliced);
    char unread;
    while (recv(tool.stream.fd(), &unread, 1, MSG_PEEK | MSG_DONTWAIT) > 0) usleep(1000);
    node.says("refused");
    node.peer = nullptr;
  }
  const std::string reason = "refused";
  std::string heard(reason.size(), 0);
  CHECK(recv(tool.peer, heard.data(), heard.size(), MSG_WAITALL) == ssize_t(reason.size()));
  CHECK(heard == reason);
  tool.peer = nullptr;
  thread.join();
}

TEST_CASE("a sender to a closed side gets an error at once, and is read until it ends too") {
  SplicedEnd tool, node;
  node.says("refused");
  node.peer = nullptr;
  SUBCASE("with bytes on the way") { tool.says("more"); }
  SUBCASE("with none on the way") {}
  std::atomic<bool> hasReturned = false;
  std::thread thread([&] {
    splice(tool.stream, node.stream);
    hasReturned = true;
    tool.end();
  });
  CHECK(tool.hears() == "refused");
  tool.says("more");
  CHECK(!hasReturned);
  tool.peer = nullptr;
  thread.join();
}

}  // namespace
}  // namespace vgpu::relay
