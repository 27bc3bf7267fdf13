// Managed memory: the program and the device access it at the same address, each its own copy, and never both at the same time.
//
// Before work that may access any memory is given to a device, the program loses its pages, and what it may have written is sent. When the
// program touches a page that it does not have, its thread waits for all outstanding work, which may use the page, and gets the device's
// bytes. So each side sees the other's writes in CUDA's order of work, including system-wide atomics; and only launches after a touch pay
// for it (docs/managed-memory.md).
//
// Any thread outside the gate. `mutex` is held while bytes are moved, in calls of our own: it comes before every other lock of the session.
// No thread that holds it waits for others to leave the gate, or for work of the program: either may wait for a host function, whose thread
// may need the mutex. A call and a touch are ordered by a Dekker pair: a call stores that it is inside the gate, then loads `touched`; a
// touch stores `touched`, then loads which threads are inside, and waits until they have left. Later work gives all pages to the device
// first, which `gives` counts: if the count is unchanged when all earlier work has ended, the touch may bring bytes.
#pragma once

#include <cuda.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "cuda-methods.h"
#include "intercept/session/managed/managed-advice.h"
#include "intercept/session/managed/managed-places.h"
#include "intercept/session/managed/managed-range.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Session;
class Thread;

class ManagedMemory {
 public:
  // Makes [address, address + bytes), whole pages of device memory, accessible to the program too, filled with zeros. CUDA's result;
  // CUDA_ERROR_OUT_OF_MEMORY if it cannot be mapped in the program there.
  CUresult add(Thread& thread, unsigned device, uint64_t address, uint64_t bytes);
  // Takes over memory of `device` that program and worker have shared: both continue in its pages as if each had its own copy. `held` is of
  // hold(). leaveHost(), with the gate closed: from now on the copies are separate.
  void take(const std::unique_lock<std::mutex>& held, unsigned device, uint64_t address, uint64_t bytes, HostPages pages);
  void leaveHost() { hasLeft.store(true, std::memory_order_relaxed); }
  // Takes the mutex, which keeps everything unchanged. For a thread that must not wait for others: `givesUp` is polled meanwhile, and if it
  // returns true, nothing is held.
  std::unique_lock<std::mutex> hold(const std::function<bool()>& givesUp);
  // The same as add(), for a variable of a module.
  CUresult addVariable(Thread& thread, unsigned device, uint64_t module, uint64_t address, uint64_t bytes);
  // Called before the device memory ends.
  void remove(uint64_t address);
  void removeModule(uint64_t module);

  // Whether the program may have access to pages now.
  bool isTouched() const { return touched.load(std::memory_order_relaxed); }
  // Whether a frame's work may use any memory: only the GPU knows which.
  static constexpr bool mayBeUsedBy(api::Method method) {
    return method == api::Method::launchKernel || method == api::Method::launchWithAttributes || method == api::Method::graphLaunch ||
           method == api::Method::graphLaunchFenced || method == api::Method::graphLaunchNumbered ||
           method == api::Method::libraryPost || method == api::Method::libraryCall;
  }
  // Whether a frame's work is a stream memory operation: pinned memory, on which it works, may be kept like managed memory
  // (Memory::allocateHost).
  static constexpr bool isMemoryOperation(api::Method method) {
    return method == api::Method::streamBatchMemOp || method == api::Method::streamWriteValue32 ||
           method == api::Method::streamWriteValue64 || method == api::Method::streamWaitValue32 ||
           method == api::Method::streamWaitValue64;
  }
  // Gives all of the program's pages to the device, before this thread posts work that may use them.
  void giveToDevice(Thread& thread);

  // Makes the next touch of `address` bring as much as possible.
  void expect(uint64_t address);

  // Gives the program read or write access to the byte at `address`. False if it is not managed memory. In any state of the calling thread,
  // except between a frame's reservation and its publication. `toucher`: another thread, which waits in a page fault (page-watch.h);
  // nullptr: `thread` itself.
  bool touch(Thread& thread, uint64_t address, bool writes, Thread* toucher = nullptr);
  // The same for all bytes, block by block: for a system call, in which the kernel cannot wait for a page.
  void touchAll(Thread& thread, uint64_t address, uint64_t bytes, bool writes);
  // Whether a copy or fill in `stream` that starts at one of these addresses uses managed memory. Our own copies, which update it, do not
  // count.
  bool isUsedIn(uint64_t stream, uint64_t one, uint64_t other = 0) const {
    if (!mayHold(one) && !mayHold(other)) return false;
    return stream == 0 || std::ranges::none_of(streams, [&](auto& own) { return own.load(std::memory_order_relaxed) == stream; });
  }
  bool exists() const { return highest.load(std::memory_order_relaxed) != 0; }
  // Whether an address may be in managed memory: lock-free, for a signal handler.
  bool mayHold(uint64_t address) const {
    return address >= lowest.load(std::memory_order_acquire) && address < highest.load(std::memory_order_acquire);
  }
  // The managed piece that contains `address`.
  std::optional<ByteSpan> find(uint64_t address) const;
  // How many bytes from `address` on have a copy each in the program and on a device, including pinned memory that is kept that way.
  uint64_t bytesFrom(uint64_t address) const;

  ManagedAdvice advice;
  ManagedPlaces places;

  // Runs a host function, for which a stream waits. Its touches wait for no work, because some of that waits for the function; what it
  // writes is on the device before the stream continues.
  void runInStream(Session& session, const std::function<void()>& function);

 private:
  using Ranges = std::map<uint64_t, ManagedRange>;  // by address

  Ranges::iterator rangeOf(uint64_t address);
  ManagedRange& insert(ManagedRange range);
  bool isSameInWorker(Thread& thread, const ManagedRange& range) const;
  void exclude(Thread& thread, std::unique_lock<std::mutex>& lock);
  CUresult fillWithZeros(Thread& thread, unsigned device, ByteSpan span);
  CUresult moveRun(Thread& thread, const ManagedRange& range, ByteSpan span, bool toDevice);
  CUresult giveAll(Thread& thread);
  void bring(Thread& thread, ManagedRange& range, uint64_t address, HostAccess access);
  uint64_t streamOf(Thread& thread, unsigned device);

  mutable std::mutex mutex;
  Ranges ranges;
  std::vector<uint64_t> opened;  // start addresses of ranges with pages that the program may access; a range may have ended
  std::atomic<bool> touched{false};
  uint64_t gives = 0;
  std::atomic<bool> hasLeft{false};  // the program's host; set while the gate is closed, read inside the gate
  bool isExcluded = false;  // no outstanding work may use managed memory; from the end of exclude() to the next give
  unsigned insistent = 0;   // touches that stop other threads' work
  std::condition_variable insistentEnded;
  std::atomic<uint64_t> lowest{UINT64_MAX}, highest{0};
  // Internal streams, by device: the program's may wait for the program. Made under the mutex, read by any thread.
  std::array<std::atomic<uint64_t>, maxDevices> streams{};
};

}  // namespace vgpu::client
