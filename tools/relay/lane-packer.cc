#include "tools/relay/lane-packer.h"

#include <lz4.h>

#include <cstring>

namespace vgpu::relay {
namespace {

// A piece that shrinks less is not worth decompressing for the receiver.
constexpr double neverAbove = 0.8;
constexpr size_t samples = 4, sampleBytes = 2048;
constexpr double usualPackSeconds = 1.5e-9;  // per byte, until measured
constexpr double newest = 0.2;               // weight of the latest measurement
// On a connection at least this fast, pieces are not even sampled: no compressor keeps up with it.
constexpr double neverBelowSeconds = 0.8e-9;  // per byte

double secondsOf(LanePacker::Clock::duration time) { return std::chrono::duration<double>(time).count(); }
void average(double& mean, double now) { mean += newest * (now - mean); }

const char* chars(const std::byte* bytes) { return static_cast<const char*>(static_cast<const void*>(bytes)); }
char* chars(std::byte* bytes) { return static_cast<char*>(static_cast<void*>(bytes)); }

}  // namespace

LanePacker::LanePacker() : packSeconds(usualPackSeconds) {}

// Compresses into `packed`. Returns the number of bytes; 0 if they would not be fewer.
size_t LanePacker::compress(std::span<const std::byte> from) {
  if (state.empty()) state.resize(static_cast<size_t>(LZ4_sizeofState()));
  if (packed.empty()) packed.resize(mostBytes);
  return static_cast<size_t>(LZ4_compress_fast_extState(state.data(), chars(from.data()), chars(packed.data()),
                                                        static_cast<int>(from.size()), static_cast<int>(from.size() - 1), 1));
}

// The compression ratio of evenly spaced samples of the piece.
double LanePacker::sampledShare(std::span<const std::byte> piece) {
  if (copy.empty()) copy.resize(mostBytes);
  for (size_t i = 0; i < samples; ++i)
    std::memcpy(&copy[i * sampleBytes], &piece[(piece.size() - sampleBytes) / (samples - 1) * i], sampleBytes);
  const size_t bytes = compress(std::span(copy).first(samples * sampleBytes));
  return bytes == 0 ? 1 : static_cast<double>(bytes) / (samples * sampleBytes);
}

// The piece is copied first: LZ4 reads some bytes twice, and the program may change them in between.
std::span<const std::byte> LanePacker::pack(std::span<const std::byte> piece) {
  if (sendSeconds < neverBelowSeconds || piece.size() < 2 * samples * sampleBytes) return piece;
  const double share = sampledShare(piece);
  if (share > neverAbove || packSeconds + share * sendSeconds >= sendSeconds) return piece;
  const auto start = Clock::now();
  std::memcpy(copy.data(), piece.data(), piece.size());
  const size_t bytes = compress(std::span(copy).first(piece.size()));
  average(packSeconds, secondsOf(Clock::now() - start) / static_cast<double>(piece.size()));
  return bytes == 0 ? piece : std::span<const std::byte>(packed).first(bytes);
}

void LanePacker::noteSent(size_t bytes, Clock::duration time) {
  average(sendSeconds, secondsOf(time) / static_cast<double>(bytes));
}

std::span<std::byte> LanePacker::packedRoom() {
  if (incoming.empty()) incoming.resize(mostBytes);
  return incoming;
}

bool LanePacker::unpack(std::span<const std::byte> from, std::span<std::byte> piece) {
  const int bytes =
      LZ4_decompress_safe(chars(from.data()), chars(piece.data()), static_cast<int>(from.size()), static_cast<int>(piece.size()));
  return bytes >= 0 && static_cast<size_t>(bytes) == piece.size();
}

}  // namespace vgpu::relay
