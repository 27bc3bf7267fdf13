// The program's contexts. The worker has one context for each device; the program's contexts are handles for it and own objects: each
// object records the context in which it was made (ObjectHead, Arena, HostAllocation, KnownTexture) and ends with it
// (driver/context-reset.h).
//
// A primary context keeps one handle and is live from the first retain to the last release or a reset; any other context is live while its
// handle is. Any thread; lock-free. Stays in the program's process over a suspend.
#pragma once

#include <array>
#include <atomic>

#include "intercept/session/handle-table.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Contexts {
 public:
  explicit Contexts(HandleTable& handles) : handles(handles) {}

  // Makes the handle of a device's primary context. Called once for each device, before the program uses the session.
  void add(unsigned device) { primaries[device].handle = handles.create(api::Kind::CONTEXT, device, 0); }

  uint64_t primary(unsigned device) const { return primaries[device].handle; }
  bool isPrimary(uint64_t context) const { return context != 0 && primary(handleDevice(context)) == context; }

  // The context that owns objects made in `context`, except streams: for a green context's context, the device's primary context.
  uint64_t ownerOf(uint64_t context) const;

  CUresult retain(unsigned device);
  // False if there was no retain to release; `last` is set if this released the last one.
  bool release(unsigned device, bool& last);
  bool isActive(unsigned device) const { return primaries[device].active.load(); }

  // Whether all flags exist in cuda.h, and at most one is a scheduling flag.
  static bool areFlags(unsigned flags) {
    const unsigned waits = flags & CU_CTX_SCHED_MASK;
    return (flags & ~CU_CTX_FLAGS_MASK) == 0 && (waits & (waits - 1)) == 0;
  }
  // The flags of a context that was created with `flags`.
  static unsigned madeWith(unsigned flags) {
    return (flags & CU_CTX_USER_COREDUMP_ENABLE) == 0 ? flags : (flags & ~CU_CTX_USER_COREDUMP_ENABLE) | CU_CTX_COREDUMP_ENABLE;
  }
  // Flags that a context keeps from its creation.
  static constexpr unsigned lastingFlags = CU_CTX_MAP_HOST | CU_CTX_COREDUMP_ENABLE | CU_CTX_USER_COREDUMP_ENABLE;

  // The flags that the program set, and `ofPrimary` for a primary context. If the context has ended: 0, CUDA_ERROR_CONTEXT_IS_DESTROYED.
  unsigned flagsOf(uint64_t context, unsigned ofPrimary = 0) const;
  CUresult setFlags(uint64_t context, unsigned flags, unsigned lasting = 0);

  // Adds a use of a live context.
  CUresult attach(uint64_t context);
  // Removes a use; whether it was the last. Primary contexts and those of green contexts have no uses to remove.
  bool detach(uint64_t context);

  // Whether it is live, and with it the objects made in it.
  bool isLive(uint64_t context) const;
  // Ends it. False if another caller has ended it already.
  bool end(uint64_t context);

  // The number of contexts ended so far: while it is unchanged, a context that was live still is.
  uint64_t endedCount() const { return ended.load(std::memory_order_acquire); }

 private:
  struct Primary {
    uint64_t handle = 0;
    std::atomic<int> retained{0};
    std::atomic<bool> active{false};
  };

  HandleTable& handles;
  std::array<Primary, maxDevices> primaries;
  std::atomic<uint64_t> ended{0};
};

}  // namespace vgpu::client
