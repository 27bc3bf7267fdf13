// Whether a lane compresses a piece before it sends it: if a sample of it shrinks so well that compressing it and sending the
// rest takes less than sending it as it is, by the times that both have taken so far. So it depends on the link, on the data, and
// on how busy this machine is. One thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace vgpu::relay {

class LanePacker {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr size_t mostBytes = 256 * 1024;  // of a piece

  LanePacker();
  // The piece as it should be sent: itself, or fewer bytes, valid until the next call. It may change meanwhile.
  std::span<const std::byte> pack(std::span<const std::byte> piece);
  // Sending so many bytes took so long.
  void noteSent(size_t bytes, Clock::duration time);

  // Room for bytes that unpack() is given; mostBytes.
  std::span<std::byte> packedRoom();
  // False if they are no LZ4 block of exactly so many bytes.
  static bool unpack(std::span<const std::byte> packed, std::span<std::byte> piece);

 private:
  size_t compress(std::span<const std::byte> from);
  double sampledShare(std::span<const std::byte> piece);

  std::vector<std::byte> state, copy, packed, incoming;  // made when they are needed
  double sendSeconds = 0, packSeconds;                   // a byte
};

}  // namespace vgpu::relay
