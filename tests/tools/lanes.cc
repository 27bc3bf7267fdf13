// Lanes of a session's two relays in one process, each on its own thread, joined by socket pairs. The bytes of a slab are there when its
// message is delivered, whatever happens to the connections; and bytes that no lane sends are refused.
#include "tools/relay/lanes.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <thread>

#include "../sanitizer-share.h"
#include "../wire/link-pair.h"
#include "vgpu/wire/segment.h"

namespace vgpu::relay {
namespace {

constexpr uint16_t numbered = 7;
struct Numbered {
  uint64_t number;
  uint32_t slab, bytes;
};

struct Side {
  Link& link;
  MemoryFile file = Segment::create();
  Segment segment{file};
  Lanes lanes{link};
  uint64_t sent = 0, taken = 0;
  const uint32_t firstSlab;  // the two sides send different slabs

  Side(Link& link, uint32_t firstSlab) : link(link), firstSlab(firstSlab) {}

  // Sends a message with a slab, whole or in part, beside it; the bytes depend on the message's number.
  void send(std::mt19937& random) {
    const Numbered head{sent, static_cast<uint32_t>(firstSlab + sent % 16), static_cast<uint32_t>(1 + random() % slabBytes)};
    std::memset(segment.slab(head.slab), static_cast<int>(sent & 0xff), head.bytes);
    auto room = link.begin(numbered, sizeof head);
    std::memcpy(room.data(), &head, sizeof head);
    if (link.takesBeside(head.bytes)) link.putBeside(head.slab, head.bytes);
    link.finish(room.size());
    isBeside.push_back(link.takesBeside(head.bytes));
    ++sent;
  }
  void take(const LinkMessage& message, const Side& from) {
    Numbered head;
    REQUIRE(message.payload.size() == sizeof head);
    std::memcpy(&head, message.payload.data(), sizeof head);
    REQUIRE(head.number == taken++);
    if (!from.isBeside[head.number]) return;
    const auto* slab = segment.slab(head.slab);
    const auto is = static_cast<std::byte>(head.number & 0xff);
    REQUIRE(std::all_of(slab, slab + head.bytes, [is](std::byte byte) { return byte == is; }));
  }
  std::vector<bool> isBeside;
};

struct Session {
  LinkPair pair;
  Side a{pair.a, 0}, b{pair.b, 32};
  std::vector<std::thread> threads;
  std::vector<int> sockets;  // of connections, for the test to break

  ~Session() { end(); }

  void connect(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      int ends[2];
      KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
      sockets.push_back(dup(ends[0]));
      start(a, ends[0]);
      start(b, ends[1]);
    }
  }
  void start(Side& side, int connection) {
    threads.emplace_back([lane = std::make_shared<Lane>(side.lanes.add(), side.file), connection] {
      lane->run([&] { return std::make_unique<PlainStream>(kj::AutoCloseFd(connection)); });
    });
  }
  // As the relays do when the session's connection is cut.
  void end() {
    a.lanes.end();
    b.lanes.end();
    while (a.lanes.count() + b.lanes.count() != 0) {
      a.lanes.hear();
      b.lanes.hear();
    }
    for (auto& thread : threads) thread.join();
    threads.clear();
    for (int socket : sockets) close(socket);
    sockets.clear();
  }
  void turn() {
    for (Side* side : {&a, &b}) {
      side->lanes.hear();
      side->lanes.give();
      side->link.acknowledge(false);
    }
    pair.move(SIZE_MAX, SIZE_MAX);
    pair.deliver([&](const LinkMessage& message) { a.take(message, b); },
                 [&](const LinkMessage& message) { b.take(message, a); });
  }
};

}  // namespace

TEST_CASE("slabs arrive before the messages that they accompany, over lanes that break") {
  std::mt19937 random(11);
  Session session;
  session.connect(3);
  constexpr uint64_t count = 400 / sanitizerShare;
  unsigned broken = 0;
  while (session.a.taken < count || session.b.taken < count) {
    for (auto [from, to] : {std::pair(&session.a, &session.b), std::pair(&session.b, &session.a)})
      if (from->sent < count && from->sent - to->taken < 16) from->send(random);  // a slab carries one message's bytes at a time
    session.turn();
    if (random() % 500 == 0 && !session.sockets.empty())  // in the middle of a transfer
      shutdown(session.sockets[random() % session.sockets.size()], SHUT_RDWR);
    if (session.a.lanes.whyEnded().empty() && session.b.lanes.whyEnded().empty()) continue;
    session.end();
    session.pair.cut();
    session.connect(1 + random() % 4);
    ++broken;
  }
  session.connect(1);
  shutdown(session.sockets.back(), SHUT_RDWR);
  while (session.a.lanes.whyEnded().empty() || session.b.lanes.whyEnded().empty()) session.turn();
  CHECK(std::ranges::count(session.a.isBeside, true) > 0);
  CHECK(session.a.link.bulkBytes() > 0);
}

TEST_CASE("a lane that cannot connect gives the reason, and does not count as ended") {
  LinkPair pair;
  Side side(pair.a, 0);
  Lane lane(side.lanes.add(), side.file);
  lane.run([]() -> std::unique_ptr<ByteStream> { KJ_FAIL_REQUIRE("no such host"); });
  side.lanes.hear();
  CHECK(side.lanes.count() == 1);  // until its end of the socket pair is closed
  CHECK(side.lanes.whyEnded().empty());
  CHECK(side.lanes.whyNotReady().find("no such host") != std::string::npos);
  CHECK_FALSE(pair.a.takesBeside(slabBytes));
}

namespace {

// The relay's error for a lane that has received these bytes, and then the end of the connection.
std::string afterReceiving(std::span<const std::byte> bytes) {
  LinkPair pair;
  Side side(pair.a, 0);
  const std::byte canary{0x5a};
  std::fill_n(side.segment.slab(0), 64, canary);
  std::byte* behind = side.segment.base() + SegmentLayout::slabs + slabCount * slabBytes;
  std::byte* before = side.segment.slab(0) - 64;
  std::fill_n(behind, 64, canary);
  std::fill_n(before, 64, canary);
  int ends[2];
  KJ_SYSCALL(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends));
  kj::AutoCloseFd stranger(ends[1]);
  auto lane = std::make_unique<Lane>(side.lanes.add(), side.file);
  std::thread thread([&] { lane->run([&] { return std::make_unique<PlainStream>(kj::AutoCloseFd(ends[0])); }); });
  while (!bytes.empty()) {
    const ssize_t put = send(stranger, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (put <= 0) break;
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
  stranger = nullptr;
  thread.join();
  std::string why;
  auto caught = kj::runCatchingExceptions([&] { side.lanes.hear(); });
  KJ_IF_MAYBE (exception, caught) {
    why = exception->getDescription().cStr();
  }
  for (int i = 0; i < 64; ++i) REQUIRE((behind[i] == canary && before[i] == canary));
  return why.empty() ? side.lanes.whyEnded() : why;
}

std::string afterReceiving(const Piece& piece, size_t bytes) {
  std::vector<std::byte> sent(sizeof piece + bytes, std::byte{0x11});
  std::memcpy(sent.data(), &piece, sizeof piece);
  return afterReceiving(sent);
}

}  // namespace

TEST_CASE("bytes that no lane sends end the lane, and nothing outside of slabs is written") {
  const std::string place = "invalid position or size";
  auto refuses = [&](const Piece& piece) { CHECK(afterReceiving(piece, 100).find(place) != std::string::npos); };
  refuses({1, slabCount, 0, 100, 100});
  refuses({1, 0xffffffff, 0, 100, 100});
  refuses({1, slabCount - 1, slabBytes - 99, 100, 100});
  refuses({1, 0, 0xffffffff, 100, 100});
  refuses({1, 0, 0, 0, 0});
  refuses({1, 0, 0, 100, 0});
  refuses({1, 0, 0, 100, 101});
  refuses({1, 0, 0, LanePacker::mostBytes + 1, 100});
  CHECK(afterReceiving({1, 0, 0, 4096, 100}, 100).find("not an LZ4 block") != std::string::npos);
  CHECK(afterReceiving({0, 0, 0, 100, 100}, 100).find("for a message that was received already") != std::string::npos);
  CHECK(afterReceiving({1, 0, 0, 100, 100}, 100).find("closed the connection") != std::string::npos);
  std::mt19937 random(3);
  for (int round = 0; round < 100; ++round) {
    std::vector<std::byte> bytes(random() % 4000);
    for (auto& byte : bytes) byte = static_cast<std::byte>(random());
    if (round % 2 == 0 && bytes.size() >= sizeof(Piece)) {  // the part beyond the first piece's header
      const Piece piece{1 + random() % 4, static_cast<uint32_t>(random() % slabCount), static_cast<uint32_t>(random() % 1000),
                        static_cast<uint32_t>(1 + random() % 2000), static_cast<uint32_t>(1 + random() % 2000)};
      std::memcpy(bytes.data(), &piece, sizeof piece);
    }
    CHECK_FALSE(afterReceiving(bytes).empty());
  }
}

}  // namespace vgpu::relay
