// Hands out addresses of a range: the lowest gap that fits, so the same requests give the same addresses every time.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace vgpu::emulator::api {

class VaRange {
 public:
  VaRange(uint64_t base, uint64_t bytes) : base_(base), end_(base + bytes) {}

  // Nothing where no gap fits.
  std::optional<uint64_t> take(uint64_t bytes, uint64_t alignment) {
    std::lock_guard lock(mutex_);
    uint64_t at = base_;
    for (const auto& [start, end] : taken_) {
      uint64_t candidate = (at + alignment - 1) / alignment * alignment;
      if (candidate <= start && start - candidate >= bytes) break;
      at = end;
    }
    at = (at + alignment - 1) / alignment * alignment;
    if (at >= end_ || end_ - at < bytes) return std::nullopt;
    taken_[at] = at + bytes;
    return at;
  }
  void give(uint64_t base) {
    std::lock_guard lock(mutex_);
    taken_.erase(base);
  }

 private:
  const uint64_t base_, end_;
  std::mutex mutex_;
  std::map<uint64_t, uint64_t> taken_;  // start to end
};

}  // namespace vgpu::emulator::api
