// A context: streams, limits, modules and the sticky error, on one device for one user.
//
// A destroyed context stays as an empty shell until the process ends, so that a caller that still has its handle or one of its streams gets
// CUDA's error instead of a crash.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "stub/emulator/driver/device.h"
#include "stub/emulator/memory/place-pool.h"
#include "stub/emulator/stream/stream.h"

namespace vgpu::emulator::api {

class Context : public Domain {
 public:
  Context(Driver&, Device&, unsigned flags, bool primary);
  ~Context() override;

  Driver& driver;
  Device& device;
  const bool primary;
  const uint64_t id;
  CUcontext handle = nullptr;
  std::atomic<unsigned> flags;
  std::atomic<int> cacheConfig{CU_FUNC_CACHE_PREFER_NONE};
  std::atomic<bool> alive{true};
  std::atomic<uint64_t> peers;  // devices whose plain memory this context's kernels may use, including its own
  StreamSet streams;
  PlacePool variables, managedVariables, heaps;

  // The first failure of device work is sticky: every later call returns it, and no later work runs.
  CUresult failure() const;
  void fail(CUresult code);
  bool failed() const override { return failure() != CUDA_SUCCESS; }
  // Refuses with the sticky error, or if the context is destroyed.
  void check() const;

  size_t limit(CUlimit) const;
  void setLimit(CUlimit, size_t);

  // Text printed by kernels, at most CU_LIMIT_PRINTF_FIFO_SIZE characters. Written to stdout by calls that flush it: a launch (at its
  // start), a synchronization, a blocking copy, loading and unloading a module, the context's end (CUDA C++ Programming Guide, "Formatted
  // Output"), and also when a kernel fails, because later calls only return the error.
  void print(const std::string& text);
  void flushOutput();
  // The heap of malloc() in this context's kernels; made at the first launch, with the size that the limit has then.
  struct Heap {
    uint64_t base = 0, bytes = 0;
  };
  Heap heap();

  // Waits for all work, writes its output, and refuses with the sticky error if there is one.
  void synchronize();
  // Ends the context: waits for its work and releases what it owns.
  void destroy();

 private:
  std::atomic<int> firstFailure{CUDA_SUCCESS};
  mutable std::mutex outputMutex;
  std::string output;
  std::map<CUlimit, size_t> limits;
  std::once_flag heapMade;
  std::unique_ptr<class PlacedRange> deviceHeap;
};

// The calling thread's stack of contexts; the last is the current one.
std::vector<std::shared_ptr<Context>>& contextStack();

}  // namespace vgpu::emulator::api
