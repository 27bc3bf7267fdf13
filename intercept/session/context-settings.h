// The program's settings of its contexts: limits, and the preferred cache configuration. (stream-priority.h has those of default streams.)
//
// The worker has one context for each device, so a setting of one of the program's contexts applies to all contexts of the device. A
// setting ends with the context for which it was made: then the latest of another context applies again, or the value before any setting.
//
// Any thread. `mutex` is a leaf lock; calls are made without it. Stays in the program's process over a suspend; a resume also restores what
// was set in the worker.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace vgpu::client {

class Thread;

class ContextSettings {
 public:
  // A setting is a CUlimit, or this number for the cache preference (CUfunc_cache).
  static constexpr int cachePreference = CU_LIMIT_MAX;

  // Sets a value for the current context. CUDA's result.
  CUresult set(Thread& thread, int setting, uint64_t value);
  // Ends the settings of `context`, which is idle. 0: a fault has ended all contexts of the device, and the worker's is new.
  void end(Thread& thread, unsigned device, uint64_t context);

 private:
  struct Value {
    unsigned device;
    int setting;
    uint64_t context;  // 0: the value before any setting
    uint64_t value;
  };
  const Value* find(unsigned device, int setting) const;  // the effective value; null: never set. Under `mutex`
  void noteFirst(Thread& thread, unsigned device, int setting);

  std::mutex mutex;
  std::vector<Value> values;  // in the order in which they were set
};

}  // namespace vgpu::client
