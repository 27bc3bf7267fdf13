// Which contexts of the program have access to another device's memory.
//
// CUDA keeps this for pairs of contexts. The worker has one context for each device, so a device has access to another while any of its
// contexts has; a frame tells the worker when that changes. It is a device setting that a resume restores; this table stays in the program
// over a suspend.
//
// Any thread; calls are made under `mutex`.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <set>
#include <utility>

namespace vgpu::client {

class Thread;

class PeerAccess {
 public:
  // Access of `context` to `peer`, live contexts of two devices. CUDA's result, e.g. already enabled, or not enabled.
  CUresult enable(Thread& thread, uint64_t context, uint64_t peer);
  CUresult disable(Thread& thread, uint64_t context, uint64_t peer);
  // `context` has ended; 0: all contexts of the device have.
  void forget(Thread& thread, unsigned device, uint64_t context);

 private:
  using Pair = std::pair<uint64_t, uint64_t>;  // a context, and the one that it has access to
  bool haveAccess(unsigned device, unsigned peer) const;

  std::mutex mutex;
  std::set<Pair> enabled;
};

}  // namespace vgpu::client
