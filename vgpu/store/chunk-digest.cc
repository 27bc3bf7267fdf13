#include "vgpu/store/chunk-digest.h"

#include <emmintrin.h>
#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vgpu/wire/image-digest.h"

namespace vgpu {

namespace {

__extension__ typedef unsigned __int128 Wide;

constexpr uint64_t prime = (uint64_t{1} << 61) - 1;

// Reduces a number below 2^122 + 2^96 to one below 2^61 - 1.
uint64_t reduce(Wide number) {
  auto low = static_cast<uint64_t>(number) & prime;
  auto high = static_cast<uint64_t>(number >> 61);
  uint64_t sum = low + (high & prime) + (high >> 61);
  sum = (sum & prime) + (sum >> 61);
  return sum == prime ? 0 : sum;
}
// An endless sequence of numbers derived from a key: SHA-256 of the key, a name and a counter.
class KeyStream {
 public:
  explicit KeyStream(const DigestKey& key) {
    std::ranges::copy(key.bytes, block.begin());
    std::memcpy(&block[key.bytes.size()], "vgpu chunk digest", 17);
  }
  uint32_t word() {
    if (used == drawn.size()) draw();
    uint32_t word;
    std::memcpy(&word, &drawn[used], sizeof word);
    used += sizeof word;
    return word;
  }
  // The point at which a polynomial is evaluated.
  uint64_t point() {
    uint64_t number = word();
    return ((number << 32) | word()) % prime;
  }

 private:
  void draw() {
    block.back() = counter++;
    drawn = digestOf(std::as_bytes(std::span(block)));
    used = 0;
  }
  std::array<uint8_t, 34> block{};
  uint8_t counter = 0;  // 256 blocks: 2,048 words
  ImageDigest drawn{};
  size_t used = drawn.size();
};

using Schedule = Digester::Schedule;
constexpr size_t vectorBytes = 16, warpColumns = 32, warpBytes = Schedule::rows * warpColumns * vectorBytes;
static_assert(Schedule::columns / warpColumns * warpBytes == tileBytes);

// (x0 + k0)(x1 + k1) and (x2 + k2)(x3 + k3).
inline __m128i products(__m128i x, __m128i key) {
  __m128i sum = _mm_add_epi32(x, key);
  return _mm_mul_epu32(sum, _mm_srli_epi64(sum, 32));
}
inline __m128i load(const void* vector) { return _mm_loadu_si128(static_cast<const __m128i*>(vector)); }

struct Column {
  uint64_t lanes[Schedule::lanes];
};

// NH of one column, whose rows lie 512 bytes apart.
inline Column hashColumn(const std::byte* column, const uint32_t* key) {
  __m128i sums[Schedule::lanes] = {};
  for (size_t row = 0; row < Schedule::rows; ++row) {
    __m128i x = load(column + row * warpColumns * vectorBytes);
    for (size_t lane = 0; lane < Schedule::lanes; ++lane) sums[lane] = _mm_add_epi64(sums[lane], products(x, load(key + 4 * (row + lane))));
  }
  Column hashed;
  for (size_t lane = 0; lane < Schedule::lanes; ++lane)
    hashed.lanes[lane] = static_cast<uint64_t>(_mm_cvtsi128_si64(sums[lane])) +
                         static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_unpackhi_epi64(sums[lane], sums[lane])));
  return hashed;
}

// Appends a column's eight words to the polynomial. Each product of a word and a power is below 2^93.
inline uint64_t append(uint64_t before, const Column& column, const std::array<uint64_t, 8>& powers, uint64_t columnPower) {
  Wide sum = Wide{before} * columnPower;
  for (size_t lane = 0; lane < Schedule::lanes; ++lane) {
    sum += Wide{powers[2 * lane]} * static_cast<uint32_t>(column.lanes[lane]);
    sum += Wide{powers[2 * lane + 1]} * (column.lanes[lane] >> 32);
  }
  return reduce(sum);
}

Digest digestTile(const Schedule& schedule, const std::byte* tile) {
  Digest digest;
  for (size_t column = 0; column < Schedule::columns; ++column) {
    const std::byte* start = tile + column / warpColumns * warpBytes + column % warpColumns * vectorBytes;
    Column hashed = hashColumn(start, schedule.nh.data());
    digest.low = append(digest.low, hashed, schedule.powers[0], schedule.columnPower[0]);
    digest.high = append(digest.high, hashed, schedule.powers[1], schedule.columnPower[1]);
  }
  return digest;
}

Schedule expand(const DigestKey& key) {
  KeyStream stream(key);
  Schedule made;
  for (auto& word : made.nh) word = stream.word();
  for (size_t i = 0; i < 2; ++i) {
    uint64_t point = stream.point(), power = 1;
    for (size_t at = 8; at-- > 0; power = multiplyModulo(power, point)) made.powers[i][at] = power;
    made.columnPower[i] = power;
    made.tilePoint[i] = stream.point();
  }
  return made;
}

}  // namespace

uint64_t multiplyModulo(uint64_t a, uint64_t b) { return reduce(Wide{a} * b); }

DigestKey DigestKey::random() {
  DigestKey key;
  while (getrandom(key.bytes.data(), key.bytes.size(), 0) < 0 && errno == EINTR) {
  }
  return key;
}

std::optional<DigestKey> DigestKey::parse(std::string_view hex) {
  DigestKey key;
  if (hex.size() != 2 * key.bytes.size()) return std::nullopt;
  for (size_t i = 0; i < hex.size(); ++i) {
    size_t digit = std::string_view("0123456789abcdef").find(hex[i]);
    if (digit == std::string_view::npos) return std::nullopt;
    key.bytes[i / 2] = static_cast<uint8_t>(key.bytes[i / 2] << 4 | digit);
  }
  return key;
}

std::string DigestKey::hex() const {
  std::string text;
  for (uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

Digester::Digester(const DigestKey& key) : made(expand(key)), zeroTile(ofTile({})) {}

Digest Digester::ofTile(std::span<const std::byte> bytes) const {
  if (bytes.size() == tileBytes) return digestTile(made, bytes.data());
  alignas(64) std::array<std::byte, tileBytes> filled{};
  if (!bytes.empty()) std::memcpy(filled.data(), bytes.data(), bytes.size());
  return digestTile(made, filled.data());
}

Digest Digester::ofTiles(std::span<const Digest> tiles, uint64_t bytes) const {
  Digest digest = begin(bytes);
  for (auto& tile : tiles) digest = append(digest, tile);
  return digest;
}

Digest Digester::operator()(std::span<const std::byte> bytes) const {
  Digest digest = begin(bytes.size());
  for (size_t at = 0; at < bytes.size(); at += tileBytes)
    digest = append(digest, ofTile(bytes.subspan(at, std::min(tileBytes, bytes.size() - at))));
  return digest;
}

Digest Digester::ofZeros(uint64_t bytes) const {
  Digest digest = begin(bytes);
  for (uint64_t at = 0; at < bytes; at += tileBytes) digest = append(digest, zeroTile);
  return digest;
}

// The chunk's size is the first coefficient, so chunks of different sizes have different polynomials.
Digest Digester::begin(uint64_t bytes) const { return {bytes % prime, bytes % prime}; }

Digest Digester::append(const Digest& before, const Digest& tile) const {
  return {reduce(Wide{before.low} * made.tilePoint[0] + tile.low), reduce(Wide{before.high} * made.tilePoint[1] + tile.high)};
}

}  // namespace vgpu
