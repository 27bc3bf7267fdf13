// The digest that identifies a chunk: 128 bits, keyed, the same whether a GPU or the host computes it (docs/snapshot.md, Digest, describes
// the function and its guarantees).
//
// A chunk is digested in tiles of 64 KiB, the last one padded with zeros; the chunk's digest is computed from its tiles' digests and its
// size. A tile is 4 x 32 columns of 32 vectors of 16 bytes: NH with four keys (Black et al., UMAC, 1999) reduces a column to 32 bytes, and
// two polynomials modulo 2^61 - 1 reduce all columns to 16 bytes.
//
// Immutable; any thread.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "vgpu/base/sizes.h"

namespace vgpu {

// Two numbers below 2^61 - 1.
struct Digest {
  uint64_t low = 0, high = 0;
  auto operator<=>(const Digest&) const = default;
};

// Kept secret from whoever chooses the digested bytes.
struct DigestKey {
  std::array<uint8_t, 16> bytes{};

  static DigestKey random();
  // Parses 32 hexadecimal digits. Returns nothing if `hex` is anything else.
  static std::optional<DigestKey> parse(std::string_view hex);
  std::string hex() const;
  bool operator==(const DigestKey&) const = default;
};

constexpr size_t tileBytes = 64 * KiB;

// The product modulo 2^61 - 1 of two numbers below it.
uint64_t multiplyModulo(uint64_t a, uint64_t b);

class Digester {
 public:
  // The values derived from a key, in the layout that a kernel takes.
  struct Schedule {
    static constexpr size_t rows = 32, columns = 128;  // vectors in a column; columns in a tile
    static constexpr size_t lanes = 4;
    std::array<uint32_t, rows * 4 + (lanes - 1) * 4> nh;  // the key of lane n begins at word 4n
    // For each polynomial, the powers 7 to 0 of its point, which multiply the words of a column, and the eighth power.
    std::array<std::array<uint64_t, 8>, 2> powers;
    std::array<uint64_t, 2> columnPower;
    std::array<uint64_t, 2> tilePoint;  // points of the polynomials over a chunk's tiles
  };

  explicit Digester(const DigestKey& key);

  // The digest of a chunk.
  Digest operator()(std::span<const std::byte> bytes) const;
  // The digest of a chunk of `bytes` zeros.
  Digest ofZeros(uint64_t bytes) const;

  // The two steps of a chunk's digest, for tiles whose digests a GPU has computed.
  Digest ofTile(std::span<const std::byte> bytes) const;  // at most tileBytes
  Digest ofTiles(std::span<const Digest> tiles, uint64_t bytes) const;

  const Schedule& schedule() const { return made; }

 private:
  Digest begin(uint64_t bytes) const;
  Digest append(const Digest& before, const Digest& tile) const;

  Schedule made;
  Digest zeroTile;
};

}  // namespace vgpu
