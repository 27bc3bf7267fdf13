// A context: streams, limits, modules and the sticky error of one device for one user of it.
//
// A destroyed context stays as an empty shell until the process ends, so that a caller that still has its handle or one of its
// streams gets CUDA's error and not a crash.
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
  std::atomic<uint64_t> peers;  // devices whose plain memory this context's kernels may use, its own included
  StreamSet streams;
  PlacePool variables, managedVariables, heaps;

  // The first failure of device work sticks: every later call answers it, no later work runs.
  CUresult failure() const;
  void fail(CUresult code);
  bool failed() const override { return failure() != CUDA_SUCCESS; }
  // Refuses with the sticky error, or where the context is destroyed.
  void check() const;

  size_t limit(CUlimit) const;
  void setLimit(CUlimit, size_t);

  // What kernels printed, as much as CU_LIMIT_PRINTF_FIFO_SIZE says; shown when a call flushes it: a launch (at its
  // start), a synchronization, a blocking copy, a module's loading and unloading, the context's end (CUDA C++
  // Programming Guide, "Formatted Output"), and where a kernel fails, because later calls only tell of that.
  void print(const std::string& text);
  void flushOutput();
  // Where this context's kernels' malloc() takes from; made at the first launch, of the size that the limit says then.
  struct Heap {
    uint64_t base = 0, bytes = 0;
  };
  Heap heap();

  // Waits for all work, shows its output, answers the sticky error.
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
