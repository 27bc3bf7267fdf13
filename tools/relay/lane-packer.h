// Decides whether to compress a piece before sending it: if, by the times that both have taken so far, compressing it and sending the
// result takes less time than sending it uncompressed, with the ratio of a sample. So the decision depends on the link, on the data, and on
// how busy this machine is. One thread.
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
  static constexpr size_t mostBytes = 256 * 1024;  // per piece

  LanePacker();
  // The bytes to send: the piece itself, or fewer bytes that are valid until the next call. The piece may change meanwhile.
  std::span<const std::byte> pack(std::span<const std::byte> piece);
  // Sending so many bytes took `time`.
  void noteSent(size_t bytes, Clock::duration time);

  // A buffer for the input of unpack(); mostBytes.
  std::span<std::byte> packedRoom();
  // Returns false if the bytes are not an LZ4 block of exactly the piece's size.
  static bool unpack(std::span<const std::byte> packed, std::span<std::byte> piece);

 private:
  size_t compress(std::span<const std::byte> from);
  double sampledShare(std::span<const std::byte> piece);

  std::vector<std::byte> state, copy, packed, incoming;  // allocated when needed
  double sendSeconds = 0, packSeconds;                   // per byte
};

}  // namespace vgpu::relay
