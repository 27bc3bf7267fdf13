// The digest by which a chunk is known: 128 bits, keyed, the same whether a GPU or the host computes it (docs/snapshot.md, Digest,
// has the function and what it promises).
//
// A chunk is digested in tiles of 64 KiB, the last one filled up with zeros; the digests of its tiles and its size make its own.
// A tile is 4 x 32 columns of 32 vectors of 16 bytes: NH with four keys (Black et al., UMAC, 1999) makes 32 bytes of a column, and two
// polynomials modulo 2^61 - 1 make 16 of all columns.
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

// Secret from who chooses what is digested.
struct DigestKey {
  std::array<uint8_t, 16> bytes{};

  static DigestKey random();
  // 32 hexadecimal digits. Nothing if the text is none.
  static std::optional<DigestKey> parse(std::string_view hex);
  std::string hex() const;
  bool operator==(const DigestKey&) const = default;
};

constexpr size_t tileBytes = 64 * KiB;

// Modulo 2^61 - 1, of numbers below it.
uint64_t multiplyModulo(uint64_t a, uint64_t b);

class Digester {
 public:
  // What a key stands for, in the order in which a kernel takes it.
  struct Schedule {
    static constexpr size_t rows = 32, columns = 128;  // vectors of a column; columns of a tile
    static constexpr size_t lanes = 4;
    std::array<uint32_t, rows * 4 + (lanes - 1) * 4> nh;  // the key of lane n begins at word 4n
    // Of each polynomial: its point's powers 7 to 0, by which the words of a column count, and the eighth.
    std::array<std::array<uint64_t, 8>, 2> powers;
    std::array<uint64_t, 2> columnPower;
    std::array<uint64_t, 2> tilePoint;  // of the polynomials over the tiles of a chunk
  };

  explicit Digester(const DigestKey& key);

  // Of a chunk.
  Digest operator()(std::span<const std::byte> bytes) const;
  // Of as many zeros.
  Digest ofZeros(uint64_t bytes) const;

  // Its parts, for tiles whose digests a GPU has computed.
  Digest ofTile(std::span<const std::byte> bytes) const;  // tileBytes at most
  Digest ofTiles(std::span<const Digest> tiles, uint64_t bytes) const;

  const Schedule& schedule() const { return made; }

 private:
  Digest begin(uint64_t bytes) const;
  Digest append(const Digest& before, const Digest& tile) const;

  Schedule made;
  Digest zeroTile;
};

}  // namespace vgpu
