// What the driver has for this process: taken when the worker is new, and again when its session has ended and all that it made
// is destroyed. Only a worker that then looks like a new one serves another program.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::stub {

struct ProcessRecord {
  // What a program can set of the default stream, which lives as long as the context. New ones have no window.
  struct DefaultStream {
    size_t windowBytes = 0;
    CUsynchronizationPolicy policy{};
    int priority = 0;
    std::array<unsigned char, 2> domains{};
    CUlaunchMemSyncDomain domain{};
    bool operator==(const DefaultStream&) const = default;
  };
  struct OfDevice {
    size_t freeBytes = 0;  // of the whole GPU: other processes take it too
    std::array<size_t, CU_LIMIT_MAX> limits{};
    DefaultStream defaultStream;
    CUfunc_cache cacheConfig = CU_FUNC_CACHE_PREFER_NONE;
    unsigned flags = 0;
  };
  std::vector<OfDevice> devices;
  std::optional<uint64_t> gpuBytes;  // of this process on all GPUs, if the system tells (memory-usage.h)
  uint64_t mappedBytes = 0;          // addresses that the driver has taken (driver-addresses.h)

  // Of `devices`, those of a new worker: `select` makes the context of one current. Throws kj::Exception.
  template <typename Select>
  static ProcessRecord take(const Driver& driver, const std::vector<unsigned>& devices, Select select) {
    ProcessRecord record;
    for (unsigned device : devices) {
      select(device);
      record.addCurrent(driver);
    }
    record.addProcess();
    return record;
  }

  // What there is now and was not when the worker was new, for a person; empty if there is nothing.
  std::string leftSince(const ProcessRecord& fresh) const;

 private:
  void addCurrent(const Driver& driver);
  void addProcess();
  std::string memoryLeftSince(const ProcessRecord& fresh) const;
};

}  // namespace vgpu::stub
