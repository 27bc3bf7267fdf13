// Sources of addresses. The simplest one uses the lowest gap of a range that fits, so the same requests always give the same addresses.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

namespace vgpu::emulator::api {

class AddressSource {
 public:
  virtual ~AddressSource() = default;
  // Nothing if no gap fits.
  virtual std::optional<uint64_t> take(uint64_t bytes, uint64_t alignment) = 0;
  virtual void give(uint64_t base) = 0;
};

class VaRange final : public AddressSource {
 public:
  VaRange(uint64_t base, uint64_t bytes) : base(base), limit(base + bytes) {}

  std::optional<uint64_t> take(uint64_t bytes, uint64_t alignment) override {
    std::lock_guard lock(mutex);
    uint64_t at = base;
    for (const auto& [start, end] : taken) {
      uint64_t candidate = (at + alignment - 1) / alignment * alignment;
      if (candidate <= start && start - candidate >= bytes) break;
      at = end;
    }
    at = (at + alignment - 1) / alignment * alignment;
    if (at >= limit || limit - at < bytes) return std::nullopt;
    taken[at] = at + bytes;
    return at;
  }
  void give(uint64_t base) override {
    std::lock_guard lock(mutex);
    taken.erase(base);
  }

 private:
  const uint64_t base, limit;
  std::mutex mutex;
  std::map<uint64_t, uint64_t> taken;  // start to end
};

}  // namespace vgpu::emulator::api
