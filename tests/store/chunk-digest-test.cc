#include "vgpu/store/chunk-digest.h"

#include <doctest/doctest.h>

#include <cstring>
#include <set>

#include "../files.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

__extension__ typedef unsigned __int128 Wide;
constexpr uint64_t prime = (uint64_t{1} << 61) - 1;

const DigestKey key = *DigestKey::parse("000102030405060708090a0b0c0d0e0f");

// The function as docs/snapshot.md specifies it, without optimization.
Digest byTheBook(const Digester::Schedule& schedule, std::vector<std::byte> bytes) {
  uint64_t size = bytes.size(), digest[2] = {size, size};
  bytes.resize(roundUp(size, tileBytes));
  for (size_t tile = 0; tile < bytes.size(); tile += tileBytes) {
    uint64_t sum[2] = {};
    for (size_t column = 0; column < 128; ++column) {
      uint64_t lanes[4] = {};
      for (size_t row = 0; row < 32; ++row) {
        uint32_t x[4];
        std::memcpy(x, &bytes[tile + column / 32 * 16384 + row * 512 + column % 32 * 16], sizeof x);
        for (size_t lane = 0; lane < 4; ++lane)
          for (size_t pair = 0; pair < 4; pair += 2) {
            const uint32_t* k = &schedule.nh[4 * (row + lane) + pair];
            lanes[lane] += uint64_t{x[pair] + k[0]} * uint64_t{x[pair + 1] + k[1]};
          }
      }
      for (size_t which = 0; which < 2; ++which) {
        uint64_t point = schedule.powers[which][6];
        for (uint64_t lane : lanes)
          for (uint64_t word : {lane & 0xffffffff, lane >> 32})
            sum[which] = static_cast<uint64_t>((Wide{sum[which]} * point + word) % prime);
      }
    }
    for (size_t which = 0; which < 2; ++which)
      digest[which] = static_cast<uint64_t>((Wide{digest[which]} * schedule.tilePoint[which] + sum[which]) % prime);
  }
  return {digest[0], digest[1]};
}

}  // namespace

TEST_CASE("the digest equals the specified function, for chunks of all sizes") {
  Digester digester(key);
  for (size_t size : {0, 1, 15, 16, 4096, 65535, 65536, 65537, 200'000, 2 << 20}) {
    CAPTURE(size);
    auto bytes = randomBytes(size, static_cast<unsigned>(size));
    CHECK(digester(bytes) == byTheBook(digester.schedule(), bytes));
    CHECK(digester.ofZeros(size) == digester(std::vector<std::byte>(size)));
    CHECK(digester(std::vector<std::byte>(size, std::byte{0xff})) ==
          byTheBook(digester.schedule(), std::vector<std::byte>(size, std::byte{0xff})));
  }
}

TEST_CASE("the digest of a key never changes, because files contain it") {
  CHECK(Digester(key)(bytesOf("the same")) == Digest{0x67ba3bb50aeb2aa, 0x1909cf991dd22188});
}

TEST_CASE("a chunk's digest depends on its tiles' digests and its size") {
  Digester digester(key);
  auto bytes = randomBytes(3 * tileBytes + 100, 1);
  std::vector<Digest> tiles;
  for (size_t at = 0; at < bytes.size(); at += tileBytes)
    tiles.push_back(digester.ofTile(std::span(bytes).subspan(at, std::min(tileBytes, bytes.size() - at))));
  CHECK(digester.ofTiles(tiles, bytes.size()) == digester(bytes));
}

TEST_CASE("similar chunks, another size and another key give other digests") {
  Digester digester(key), other(DigestKey{});
  std::set<Digest> seen;
  std::vector<std::byte> bytes(tileBytes + 64);
  auto isNew = [&](const Digest& digest) { return seen.insert(digest).second; };
  CHECK(isNew(digester(bytes)));
  CHECK(isNew(other(bytes)));
  for (size_t at = 0; at < bytes.size(); at += 37) {
    bytes[at] ^= std::byte{1};
    CHECK(isNew(digester(bytes)));
    bytes[at] ^= std::byte{1};
  }
  for (size_t size = 1; size < 100; ++size) CHECK(isNew(digester(std::span(bytes).first(size))));
  // Two words swapped, or a value moved from one word to another, which a sum would not detect.
  auto number = [&](size_t word, uint32_t value) { std::memcpy(&bytes[4 * word], &value, 4); };
  for (size_t a = 0; a < 64; a += 3)
    for (size_t b = 0; b < 64; b += 5) {
      if (a == b) continue;
      number(a, 5), number(b, 7);
      CHECK(isNew(digester(bytes)));
      number(a, 0), number(b, 0);
    }
}

TEST_CASE("a key is 32 hexadecimal digits") {
  CHECK(DigestKey::parse(key.hex()) == key);
  CHECK(DigestKey::random().hex() != DigestKey::random().hex());
  for (const char* bad : {"", "00", "000102030405060708090a0b0c0d0e0g", "000102030405060708090a0b0c0d0e0f0", "000102030405060708090A0B0C0D0E0F"})
    CHECK_FALSE(DigestKey::parse(bad).has_value());
}
