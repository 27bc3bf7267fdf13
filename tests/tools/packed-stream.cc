// Streams of memory whose pieces are compressed on slow connections.
#include "tools/relay/packed-stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <deque>
#include <random>
#include <string>
#include <thread>

#include "tools/common/reason.h"

namespace vgpu::relay {
namespace {

// Bytes in transit in one direction.
struct Wire {
  std::deque<std::byte> bytes;
  size_t carried = 0;
};

// One end of a connection within this process, which alternately moves some bytes and none.
class Connection final : public ByteStream {
 public:
  Connection(Wire& out, Wire& in, size_t atOnce, std::chrono::microseconds pause = {})
      : out(out), in(in), atOnce(atOnce), pause(pause) {}

  size_t read(std::span<std::byte> room) override {
    if ((mayRead = !mayRead)) return 0;
    const size_t got = std::min({room.size(), in.bytes.size(), atOnce});
    std::copy_n(in.bytes.begin(), got, room.begin());
    in.bytes.erase(in.bytes.begin(), in.bytes.begin() + static_cast<ptrdiff_t>(got));
    if (got == 0 && isClosed) endReading("closed");
    return got;
  }
  size_t write(std::span<const std::byte> bytes) override {
    if ((mayWrite = !mayWrite)) return 0;
    std::this_thread::sleep_for(pause);
    const size_t put = std::min(bytes.size(), atOnce);
    out.bytes.insert(out.bytes.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(put));
    out.carried += put;
    return put;
  }
  int fd() const override { return -1; }
  short eventsOf(bool, bool) const override { return 0; }

  bool isClosed = false;

 private:
  Wire &out, &in;
  const size_t atOnce;
  const std::chrono::microseconds pause;
  bool mayRead = true, mayWrite = true;
};

std::vector<std::byte> halfRandom(size_t bytes) {
  std::mt19937_64 random(7);
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i + 8 <= bytes; i += 16) {
    const uint64_t word = random();
    std::memcpy(&made[i], &word, 8);
  }
  std::sort(made.begin(), made.end());  // gives long runs of each value
  return made;
}

struct PackedEnds {
  Wire there, back;
  std::unique_ptr<PackedStream> one, other;
  Connection* otherEnd;

  explicit PackedEnds(size_t atOnce, std::chrono::microseconds pause = {}) {
    auto end = std::make_unique<Connection>(back, there, atOnce);
    otherEnd = end.get();
    one = std::make_unique<PackedStream>(std::make_unique<Connection>(there, back, atOnce, pause));
    other = std::make_unique<PackedStream>(std::move(end));
  }

  // Writes all bytes in calls of `callBytes`, each from another address, and returns the received bytes.
  std::vector<std::byte> carry(std::span<const std::byte> bytes, size_t callBytes) {
    std::vector<std::byte> came, room(1000);
    size_t taken = 0;
    for (int idle = 0; idle < 8 && !other->hasEnded();) {
      std::vector<std::byte> call(bytes.begin() + static_cast<ptrdiff_t>(taken),
                                  bytes.begin() + static_cast<ptrdiff_t>(std::min(bytes.size(), taken + callBytes)));
      const size_t put = one->write(call), got = other->read(room);
      taken += put;
      came.insert(came.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(got));
      idle = put == 0 && got == 0 && there.bytes.empty() && taken == bytes.size() ? idle + 1 : 0;
    }
    return came;
  }
  // The receiver's error for the bytes that were sent; empty: none.
  std::string refusal() {
    std::string why;
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { carry({}, 1); })) why = reasonOf(*exception);
    return why;
  }
  void send(std::span<const uint32_t> head, size_t more) {
    auto bytes = std::as_bytes(head);
    there.bytes.insert(there.bytes.end(), bytes.begin(), bytes.end());
    there.bytes.insert(there.bytes.end(), more, std::byte{0xff});
  }
};

}  // namespace

TEST_CASE("bytes of a packed stream arrive unchanged, however few the connection takes at a time") {
  const auto bytes = halfRandom(300'000);
  for (size_t atOnce : {7u, 4096u, 1u << 20})
    for (size_t callBytes : {500u, 70'000u, 300'000u}) CHECK(PackedEnds(atOnce).carry(bytes, callBytes) == bytes);
}

TEST_CASE("a packed stream sends fewer bytes than it is given if the connection is slow, and they arrive unchanged") {
  PackedEnds slow(16 * 1024, std::chrono::milliseconds(2));
  const auto bytes = halfRandom(8 * LanePacker::mostBytes);
  CHECK(slow.carry(bytes, LanePacker::mostBytes) == bytes);
  CHECK(slow.there.carried < bytes.size() / 2);
}

TEST_CASE("a packed stream refuses a piece of an impossible size") {
  const uint32_t most = LanePacker::mostBytes;
  const std::array<uint32_t, 2> heads[] = {{0, 0}, {100, 0}, {100, 101}, {most + 1, most + 1}, {most + 1, 100}, {UINT32_MAX, 1}};
  for (auto& head : heads) {
    PackedEnds link(4096);
    link.send(head, 200);
    CHECK(link.refusal() == "the other side sent a piece with an invalid size");
  }
}

TEST_CASE("a packed stream refuses a piece that is not an LZ4 block of its size") {
  PackedEnds link(4096);
  link.send(std::array<uint32_t, 2>{1000, 50}, 50);
  CHECK(link.refusal() == "the other side sent a piece that is not an LZ4 block");
}

TEST_CASE("a packed stream ends with its connection, after the bytes that have arrived") {
  PackedEnds link(4096);
  const auto bytes = halfRandom(100);
  while (link.one->write(bytes) == 0) continue;
  link.otherEnd->isClosed = true;
  std::vector<std::byte> came, room(64);
  while (!link.other->hasEnded()) {
    const size_t got = link.other->read(room);
    came.insert(came.end(), room.begin(), room.begin() + static_cast<ptrdiff_t>(got));
  }
  CHECK(came == bytes);
  CHECK(link.other->whyEnded() == "closed");
}

}  // namespace vgpu::relay
