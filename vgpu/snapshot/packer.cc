#include "vgpu/snapshot/packer.h"

#include <kj/debug.h>
#include <zstd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <utility>

namespace vgpu::snapshot {

namespace {

// The fastest level that still halves what a program's memory usually holds.
constexpr int level = 1;
// Chunks whose sample shrinks to this share are compressed at some GB/s, faster than any thread writes.
constexpr double alwaysBelow = 1.0 / 16;
// Shrinking a chunk by less than this does not justify decompressing it later.
constexpr double neverAbove = 0.8;
constexpr size_t samples = 4, sampleBytes = 4096;
constexpr double usualPackSeconds = 2e-9;  // per byte, until measured
constexpr double newest = 0.2;             // weight of the latest measurement

using Clock = std::chrono::steady_clock;

void average(double& mean, double now) { mean = mean == 0 ? now : mean + newest * (now - mean); }

}  // namespace

Packer::Packer() : context(ZSTD_createCCtx()), packSeconds(usualPackSeconds) {
  KJ_REQUIRE(context != nullptr, "no memory to compress with");
}
Packer::~Packer() { ZSTD_freeCCtx(context); }
Packer::Packer(Packer&& other) noexcept
    : context(std::exchange(other.context, nullptr)),
      room(std::move(other.room)),
      writeSeconds(other.writeSeconds),
      packSeconds(other.packSeconds) {}

// The compression ratio of evenly spaced samples of the chunk.
double Packer::sampledShare(std::span<const std::byte> chunk) {
  std::array<std::byte, samples * sampleBytes> sample;
  std::array<std::byte, samples * sampleBytes + 512> packed;
  for (size_t i = 0; i < samples; ++i)
    std::memcpy(&sample[i * sampleBytes], &chunk[(chunk.size() - sampleBytes) / (samples - 1) * i], sampleBytes);
  size_t bytes = ZSTD_compressCCtx(context, packed.data(), packed.size(), sample.data(), sample.size(), level);
  return ZSTD_isError(bytes) ? 1 : static_cast<double>(bytes) / sample.size();
}

Packer::Packed Packer::pack(std::span<const std::byte> chunk) {
  Packed plain{Form::plain, chunk};
  bool isSmall = chunk.size() < samples * sampleBytes;
  double share = isSmall ? 0 : sampledShare(chunk);
  bool pays = share < alwaysBelow || (share < neverAbove && packSeconds + share * writeSeconds < writeSeconds);
  if (!pays) return plain;
  if (room.empty()) room.resize(packedMost());
  auto start = Clock::now();
  size_t bytes = ZSTD_compressCCtx(context, room.data(), room.size(), chunk.data(), chunk.size(), level);
  KJ_REQUIRE(!ZSTD_isError(bytes), "compressing", ZSTD_getErrorName(bytes));
  double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  if (!isSmall && share >= alwaysBelow) average(packSeconds, seconds / static_cast<double>(chunk.size()));
  if (bytes >= chunk.size()) return plain;
  return {Form::zstd, std::span(room).first(bytes)};
}

void Packer::noteWritten(size_t bytes, double seconds) {
  if (bytes >= samples * sampleBytes) average(writeSeconds, seconds / static_cast<double>(bytes));
}

size_t unpackedBytes(Form form, std::span<const std::byte> packed) {
  const uint64_t bytes = form == Form::plain ? packed.size() : ZSTD_getFrameContentSize(packed.data(), packed.size());
  return bytes <= chunkBytes ? bytes : 0;  // an error code of ZSTD is a larger number
}

bool unpack(Form form, std::span<const std::byte> packed, std::span<std::byte> chunk) {
  if (form == Form::plain) return packed.size() == chunk.size() && (std::memcpy(chunk.data(), packed.data(), chunk.size()), true);
  size_t bytes = ZSTD_decompress(chunk.data(), chunk.size(), packed.data(), packed.size());
  return !ZSTD_isError(bytes) && bytes == chunk.size();
}

}  // namespace vgpu::snapshot
