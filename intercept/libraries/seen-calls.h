// Which calls of libraries are known to succeed. A call is told by a digest of everything its status may depend on; one that the
// library has taken once is posted from then on.
//
// A table of fixed size for the whole process: a digest that takes another's place only makes that call wait once more. Any thread,
// without a lock. It stays over a suspend; what is known of another GPU is told apart by the digest (library-call.cc).
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
