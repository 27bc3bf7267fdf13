// What the program has set of its contexts: limits, and which cache kernels prefer. (What is set of their default streams ends beside it:
// stream-priority.h.)
//
// The worker has one context for each device, so that what is set of one of the program's contexts holds in all of the device's. It ends
// with the context of which it was set: then what was set of another one holds again, or what held before anything was set.
//
// Any thread. `mutex` is a leaf; calls are made without it. All of it stays in the program's process over a suspend, and what the
// worker was told is part of what a resume makes again.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <vector>

namespace vgpu::client {

class Thread;

class ContextSettings {
 public:
  // A setting is a limit (CUlimit), or this one (CUfunc_cache).
  static constexpr int cachePreference = CU_LIMIT_MAX;

  // Of the current context. CUDA's result.
  CUresult set(Thread& thread, int setting, uint64_t value);
  // The context has ended, and is idle; 0: a fault has ended all of the device, and the worker's, which begins anew.
  void end(Thread& thread, unsigned device, uint64_t context);

 private:
  struct Value {
    unsigned device;
    int setting;
    uint64_t context;  // 0: before anything was set
    uint64_t value;
  };
  const Value* find(unsigned device, int setting) const;  // what holds; null: it was never set. Under `mutex`
  void noteFirst(Thread& thread, unsigned device, int setting);

  std::mutex mutex;
  std::vector<Value> values;  // in the order in which they were set
};

}  // namespace vgpu::client
