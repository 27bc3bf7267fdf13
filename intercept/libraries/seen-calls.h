// Library calls that are known to succeed. A call is identified by a digest of everything that its status may depend on; once the library
// has accepted it, later identical calls are posted.
//
// A fixed-size table for the process: a digest that replaces another one only makes that call wait once more. Any thread, lock-free.
// Survives a suspend; the digest distinguishes calls of another GPU (library-call.cc).
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

namespace vgpu::client {

class SeenCalls {
 public:
  bool has(uint64_t digest) const { return placeOf(digest).load(std::memory_order_relaxed) == digest; }
  void add(uint64_t digest) { placeOf(digest).store(digest, std::memory_order_relaxed); }

 private:
  static constexpr size_t count = 8192;
  std::atomic<uint64_t>& placeOf(uint64_t digest) { return places[digest % count]; }
  const std::atomic<uint64_t>& placeOf(uint64_t digest) const { return places[digest % count]; }

  std::array<std::atomic<uint64_t>, count> places{};
};

}  // namespace vgpu::client
