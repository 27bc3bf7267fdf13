// Managed memory: the program and the device access it at one address, each its own copy, and never both at a time.
//
// Before work that may access any memory is given to a device, the program loses its pages, and what it may have written is sent.
// When the program touches a page that it does not have, its thread waits for all outstanding work, which may use the page, and
// gets the device's bytes. So what either side writes, the other one sees as CUDA orders their work, atomics of the whole system
// too; and only launches after a touch pay for it (docs/managed-memory.md).
//
// Any thread outside the gate. `mutex` is held while bytes are moved, in calls of our own: it comes before every other lock of
// the session. No thread that holds it waits until others have left the gate, or for work of the program: either may wait for a
// host function, whose thread may need the mutex. Between work and a touch is a Dekker pair: a call stores that it is inside the
// gate, then loads `touched`; a touch stores `touched`, then loads who is inside, and waits until they are not. Work that comes
// later gives all pages to the device first, which `gives` counts: if it has not changed when all work before has ended, the
// touch may bring bytes.
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
  // [address, address + bytes), whole pages of device memory, is accessed by the program too, and zero. CUDA's answer;
  // CUDA_ERROR_OUT_OF_MEMORY if the program cannot have it there.
  CUresult add(Thread& thread, unsigned device, uint64_t address, uint64_t bytes);
  // Memory of `device` that the program and the worker have shared until now, and in whose pages both go on as if each had a copy of
  // its own. leaveHost(): they are different ones from now on; the gate is closed. `held` is of hold().
  void take(const std::unique_lock<std::mutex>& held, unsigned device, uint64_t address, uint64_t bytes, HostPages pages);
  void leaveHost() { hasLeft.store(true, std::memory_order_relaxed); }
  // Keeps all as it is. For a thread that must not wait for others: `givesUp` is polled meanwhile, and if it returns true, nothing is
  // held.
  std::unique_lock<std::mutex> hold(const std::function<bool()>& givesUp);
  // So is a variable of a module.
  CUresult addVariable(Thread& thread, unsigned device, uint64_t module, uint64_t address, uint64_t bytes);
  // Before the device's memory ends.
  void remove(uint64_t address);
  void removeModule(uint64_t module);

  // Whether the program may have pages now.
  bool isTouched() const { return touched.load(std::memory_order_relaxed); }
  // Whether a frame's work may use any memory: nobody but the GPU knows which.
  static constexpr bool mayBeUsedBy(api::Method method) {
    return method == api::Method::launchKernel || method == api::Method::launchWithAttributes || method == api::Method::graphLaunch ||
           method == api::Method::graphLaunchFenced || method == api::Method::graphLaunchNumbered ||
           method == api::Method::libraryPost || method == api::Method::libraryCall;
  }
  // Whether a frame's work is an operation of its stream on memory: on pinned memory, which may be kept as managed memory is
  // (Memory::allocateHost).
  static constexpr bool isMemoryOperation(api::Method method) {
    return method == api::Method::streamBatchMemOp || method == api::Method::streamWriteValue32 ||
           method == api::Method::streamWriteValue64 || method == api::Method::streamWaitValue32 ||
           method == api::Method::streamWaitValue64;
  }
  // The device gets all that the program has, before this thread gives it work that may use it.
  void giveToDevice(Thread& thread);

  // The next touch of `address` brings as much as it can.
  void expect(uint64_t address);

  // The program may read, or write, the bytes at `address` when this returns. False if it is none of ours. Any state of the
  // calling thread, except between a frame's reservation and its publication. `toucher`: another thread, which waits for that in a
  // page fault (page-watch.h); nullptr: `thread` itself.
  bool touch(Thread& thread, uint64_t address, bool writes, Thread* toucher = nullptr);
  // The same of all bytes, one block after the other: for a system call, which the kernel does not wait in.
  void touchAll(Thread& thread, uint64_t address, uint64_t bytes, bool writes);
  // Whether a copy or fill in `stream` that begins at one of these addresses uses managed memory. Our own copies do not: they are
  // how it is brought up to date.
  bool isUsedIn(uint64_t stream, uint64_t one, uint64_t other = 0) const {
    if (!mayHold(one) && !mayHold(other)) return false;
    return stream == 0 || std::ranges::none_of(streams, [&](auto& own) { return own.load(std::memory_order_relaxed) == stream; });
  }
  bool exists() const { return highest.load(std::memory_order_relaxed) != 0; }
  // Whether an address may be in managed memory: without a lock, for a signal handler.
  bool mayHold(uint64_t address) const {
    return address >= lowest.load(std::memory_order_acquire) && address < highest.load(std::memory_order_acquire);
  }
  // The managed piece that holds `address`.
  std::optional<ByteSpan> find(uint64_t address) const;
  // How many bytes from `address` on the program and a device have a copy each of, pinned memory that is kept so included.
  uint64_t bytesFrom(uint64_t address) const;

  ManagedAdvice advice;
  ManagedPlaces places;

  // Runs a host function that a stream is waiting for. What it touches waits for no work, of which some waits for it; what it
  // writes is on the device before the stream goes on.
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
  std::vector<uint64_t> opened;  // where the ranges begin of which the program may access pages; one may have ended
  std::atomic<bool> touched{false};
  uint64_t gives = 0;
  std::atomic<bool> hasLeft{false};  // the program's host; changes while the gate is closed, and is read inside
  bool isExcluded = false;  // no work is outstanding that may use managed memory; from the end of exclude() to the next give
  unsigned insistent = 0;   // touches that keep other threads' work away
  std::condition_variable insistentEnded;
  std::atomic<uint64_t> lowest{UINT64_MAX}, highest{0};
  // Of our own, by device; made under the mutex, read by any thread. Bytes must not wait behind what waits for the program.
  std::array<std::atomic<uint64_t>, maxDevices> streams{};
};

}  // namespace vgpu::client
