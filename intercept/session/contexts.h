// The program's contexts. A session has one a device in the worker; what the program makes are names for it, and owners:
// an object remembers the context that it was made in (ObjectEntry, Arena, HostAllocation, KnownTexture) and ends with it
// (driver/context-reset.h).
//
// A primary context has one handle for ever and is live between the first retain and the last release or a reset; any
// other is live while its handle is. Any thread; no locks. All of it stays in the program's process over a suspend.
#pragma once

#include <array>
#include <atomic>

#include "intercept/session/handle-table.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Contexts {
 public:
  explicit Contexts(HandleTable& handles) : handles(handles) {}

  // Makes the handle of a device's primary context. Once a device, before the program sees the session.
  void add(unsigned device) { primaries[device].handle = handles.create(api::Kind::CONTEXT, device, 0); }

  uint64_t primary(unsigned device) const { return primaries[device].handle; }
  bool isPrimary(uint64_t context) const { return context != 0 && primary(handleDevice(context)) == context; }

  void retain(unsigned device);
  // Whether there was a retain to take back; `last` where it was the last one.
  bool release(unsigned device, bool& last);
  bool isActive(unsigned device) const { return primaries[device].active.load(); }

  std::atomic<unsigned>& flagsOfPrimary(unsigned device) { return primaries[device].flags; }

  // Whether what is made in it is still there.
  bool isLive(uint64_t context) const;
  // From here on it is not. False where that was so before, for whoever comes second.
  bool end(uint64_t context);

  // How many have ended so far: while it stands still, a context that was live is.
  uint64_t endedCount() const { return ended.load(std::memory_order_acquire); }

 private:
  struct Primary {
    uint64_t handle = 0;
    std::atomic<int> retained{0};
    std::atomic<bool> active{false};
    std::atomic<unsigned> flags{0};
  };

  HandleTable& handles;
  std::array<Primary, maxDevices> primaries;
  std::atomic<uint64_t> ended{0};
};

}  // namespace vgpu::client
