// On which device each granule of managed memory is to lie, where a session has several that reach each other's memory: on the device
// of its addresses, until the program wants it on another one (a prefetch, or advice of a preferred location). The worker moves it,
// at the same addresses, when the devices have no work; until then, and if there is no room, all use it where it is.
//
// A granule belongs to whoever wants its middle: of two slices of an allocation that share one, always the same.
//
// Any thread, with a current context. `mutex` is held while the worker is asked, which waits for the program's work, but not for long; it
// comes before the mutexes of Memory. Stays in the program's process over a suspend; the worker's half is in the lease's recipe.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "intercept/session/managed/managed-range.h"

namespace vgpu::client {

class Thread;

class ManagedPlaces {
 public:
  // All of `span` is to lie there, if that is a device of several that reach each other. Moves it if the devices have no work soon, and
  // what could not move before if they have none now.
  void want(Thread& thread, ByteSpan span, const CUmemLocation& location);
  // The program gets it, and wants no other place yet than that device. Does not wait.
  void begin(Thread& thread, ByteSpan span, unsigned device) {
    if (anyMoved.load(std::memory_order_relaxed)) want(thread, span, device, false);
  }
  // The lease ends.
  void forget(uint64_t lease);
  // What is wanted on another device than that of its addresses, allocated or not.
  struct Run {
    uint64_t address, bytes;
    unsigned device;
  };
  std::vector<Run> elsewhere();

 private:
  struct Lease {
    std::vector<uint8_t> devices;  // of each granule
    bool isBusy = false;           // the worker could not move all of it yet
  };
  void want(Thread& thread, ByteSpan span, unsigned device, bool mayWait);
  void send(Thread& thread, uint64_t address, Lease& lease, bool mayWait);

  std::mutex mutex;
  std::map<uint64_t, Lease> leases;  // by address: those of which something has been wanted elsewhere
  std::atomic<bool> anyMoved{false};  // has ever been
};

}  // namespace vgpu::client
