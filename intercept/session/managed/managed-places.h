// The device on which each granule of managed memory is to lie, in a session with several devices that are peers: the device of its
// addresses, until the program wants it elsewhere (a prefetch, or advice of a preferred location). The worker moves it, at the same
// addresses, when the devices are idle; until then, or if there is no room, all devices use it where it is.
//
// A granule goes with the request that covers its middle: of two slices of an allocation that share a granule, always the same one.
//
// Any thread, with a current context. `mutex` is held over the call to the worker, which waits for the program's work only for a short
// time; it comes before Memory's mutexes. Stays in the program's process over a suspend; the worker's part is in the lease's recipe.
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
  // Requests that all of `span` lie at `location`, if that is a device and the devices are peers. Moves it if the devices become idle soon;
  // also retries earlier moves if they are idle now.
  void want(Thread& thread, ByteSpan span, const CUmemLocation& location);
  // The program gets this memory and has requested no location yet: it belongs on `device`. Does not wait.
  void begin(Thread& thread, ByteSpan span, unsigned device) {
    if (anyMoved.load(std::memory_order_relaxed)) want(thread, span, device, false);
  }
  // The lease has ended.
  void forget(uint64_t lease);
  // Granules that belong on another device than that of their addresses, allocated or not.
  struct Run {
    uint64_t address, bytes;
    unsigned device;
  };
  std::vector<Run> elsewhere();

 private:
  struct Lease {
    std::vector<uint8_t> devices;  // for each granule
    bool isBusy = false;           // the worker could not move all of it yet
  };
  void want(Thread& thread, ByteSpan span, unsigned device, bool mayWait);
  void send(Thread& thread, uint64_t address, Lease& lease, bool mayWait);

  std::mutex mutex;
  std::map<uint64_t, Lease> leases;  // by address: leases with a granule that was requested elsewhere
  std::atomic<bool> anyMoved{false};  // whether anything ever was
};

}  // namespace vgpu::client
