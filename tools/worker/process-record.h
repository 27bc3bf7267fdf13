// A record of the driver's state in this process: taken when the worker is new, and again when its session has ended and everything that it
// made is destroyed. The worker serves another program only if both are equal.
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
  // Attributes of the default stream that a program can set; the stream lives as long as the context. New ones have no window.
  struct DefaultStream {
    size_t windowBytes = 0;
    CUsynchronizationPolicy policy{};
    int priority = 0;
    std::array<unsigned char, 2> domains{};
    CUlaunchMemSyncDomain domain{};
    bool operator==(const DefaultStream&) const = default;
  };
  struct OfDevice {
    size_t freeBytes = 0;  // of the whole GPU, which other processes use too
    std::array<size_t, CU_LIMIT_MAX> limits{};
    DefaultStream defaultStream;
    CUfunc_cache cacheConfig = CU_FUNC_CACHE_PREFER_NONE;
    unsigned flags = 0;
  };
  std::vector<OfDevice> devices;
  std::optional<uint64_t> gpuBytes;  // used by this process on all GPUs, if the system reports it (memory-usage.h)
  uint64_t mappedBytes = 0;          // address space that the driver has taken (driver-addresses.h)

  // For `devices`, those of a new worker: `select` makes a device's context current. Throws kj::Exception.
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

  // What exists now but did not when the worker was new, as a message; empty if there is nothing.
  std::string leftSince(const ProcessRecord& fresh) const;

 private:
  void addCurrent(const Driver& driver);
  void addProcess();
  std::string memoryLeftSince(const ProcessRecord& fresh) const;
};

}  // namespace vgpu::stub
