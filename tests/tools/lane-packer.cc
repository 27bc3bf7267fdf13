// What a lane compresses: pieces that shrink, on a slow connection; and that invalid blocks are refused.
#include "tools/relay/lane-packer.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>

namespace vgpu::relay {
namespace {

constexpr size_t pieceBytes = LanePacker::mostBytes;

std::vector<std::byte> randomBytes(size_t bytes, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> made(bytes);
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    const uint64_t word = random();
    std::memcpy(&made[i], &word, 8);
  }
  return made;
}
// Bytes of which half of each kibibyte is zero.
std::vector<std::byte> halfRandom() {
  auto made = randomBytes(pieceBytes, 3);
  for (size_t i = 0; i < made.size(); i += 1024) std::fill_n(made.begin() + static_cast<ptrdiff_t>(i), 512, std::byte{0});
  return made;
}

// A packer whose connection has taken a second for each `bytesPerSecond` bytes.
LanePacker packerOf(double bytesPerSecond) {
  LanePacker packer;
  const auto time = std::chrono::duration<double>(static_cast<double>(pieceBytes) / bytesPerSecond);
  for (int i = 0; i < 50; ++i) packer.noteSent(pieceBytes, std::chrono::duration_cast<LanePacker::Clock::duration>(time));
  return packer;
}

}  // namespace

TEST_CASE("a piece that shrinks is compressed for a slow connection, and unpacked unchanged") {
  const auto piece = halfRandom();
  auto packer = packerOf(10e6);
  const auto packed = packer.pack(piece);
  CHECK(packed.size() < piece.size() * 3 / 4);
  std::vector<std::byte> out(piece.size());
  REQUIRE(LanePacker::unpack(packed, out));
  CHECK(out == piece);
}

TEST_CASE(
    "a piece that does not shrink, or is small, is sent uncompressed; so are the first pieces, and all pieces for a fast connection") {
  auto isPlain = [](LanePacker packer, std::span<const std::byte> piece) {
    const auto packed = packer.pack(piece);
    return packed.data() == piece.data() && packed.size() == piece.size();
  };
  const auto half = halfRandom();
  CHECK(isPlain(packerOf(10e6), randomBytes(pieceBytes, 1)));
  CHECK(isPlain(packerOf(10e6), std::span<const std::byte>(half).first(2000)));
  CHECK(isPlain(packerOf(5e9), half));
  CHECK(isPlain(LanePacker(), half));
}

TEST_CASE("a piece of which only the sample shrinks is sent uncompressed") {
  auto piece = randomBytes(pieceBytes, 2);
  for (size_t i = 0; i < 4; ++i)  // at the positions of the samples
    std::fill_n(piece.begin() + static_cast<ptrdiff_t>((pieceBytes - 2048) / 3 * i), 2048, std::byte{0});
  auto packer = packerOf(10e6);
  const auto packed = packer.pack(piece);
  std::vector<std::byte> out(piece.size());
  if (packed.size() == piece.size())
    CHECK(packed.data() == piece.data());
  else
    REQUIRE((LanePacker::unpack(packed, out) && out == piece));
}

TEST_CASE("a block that does not unpack to exactly the given size is refused, and nothing outside is written") {
  auto packer = packerOf(10e6);
  const auto packed = packer.pack(halfRandom());
  std::vector<std::byte> bytes(packed.begin(), packed.end()), out(pieceBytes + 64, std::byte{0x77});
  CHECK_FALSE(LanePacker::unpack(std::span(bytes).first(bytes.size() / 2), std::span(out).first(pieceBytes)));
  CHECK_FALSE(LanePacker::unpack(bytes, std::span(out).first(pieceBytes - 1)));
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    auto changed = bytes;
    for (int i = 0; i < 4; ++i) changed[random() % changed.size()] ^= static_cast<std::byte>(1u << (random() % 8));
    LanePacker::unpack(changed, std::span(out).first(pieceBytes));
    LanePacker::unpack(randomBytes(1000, static_cast<unsigned>(round)), std::span(out).first(4096));
  }
  CHECK(std::all_of(out.begin() + pieceBytes, out.end(), [](std::byte byte) { return byte == std::byte{0x77}; }));
}

}  // namespace vgpu::relay
