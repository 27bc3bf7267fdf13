// What this session shares with other sessions of its user (docs/ipc.md): memory and events that it has given to them by a name,
// and those that it has taken.
//
// A name is 16 random bytes. The program passes it on in a handle of CUDA's; the daemon finds the object for whoever has the
// name. The worker moves what is given into physical memory of its own, and maps what is taken at addresses of the session's
// arena.
//
// Any thread. `changing` is held over a change, and calls are made under it; then `mutex`, a leaf, guards the tables. Stays in
// the program's process over a suspend, which is of all sessions that share (docs/ipc.md): their workers give the same again, by the
// recipes of the objects.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "intercept/session/shared-name.h"

namespace vgpu::client {

class Thread;

class SharedObjects {
 public:
  // CUDA's results.
  // Gives the allocation at `address`, in whichever part of it that is.
  CUresult giveMemory(Thread& thread, uint64_t address, SharedName& name);
  // Takes memory: each time the same address, as often as it is closed. `isOfPool`: it ends with a free instead.
  CUresult takeMemory(Thread& thread, const SharedName& name, bool isOfPool, uint64_t& address);
  CUresult closeMemory(Thread& thread, uint64_t address, bool isOfPool);
  CUresult giveEvent(Thread& thread, uint64_t event, SharedName& name);
  CUresult takeEvent(Thread& thread, const SharedName& name, uint64_t& event);
  // Physical memory that the program maps itself.
  CUresult givePhysical(Thread& thread, uint64_t physical, const SharedName& name);
  CUresult takePhysical(Thread& thread, const SharedName& name, uint64_t& physical, uint64_t& bytes);

  // Whether an allocation that begins there is another session's.
  bool isTaken(uint64_t address) const;
  bool isTakenOfPool(uint64_t address) const;
  // Ends it, however often it has been opened.
  CUresult closeWhole(Thread& thread, uint64_t address);
  // Whether the allocation that begins there is given to others: when it is freed its addresses get other physical memory.
  bool isGiven(uint64_t address) const;
  // The allocation, or the event, is being freed. Whether it was given to others, who may have it until the worker has freed it.
  bool freed(uint64_t object);

 private:
  struct Taken {
    SharedName name;
    uint64_t lease;
    unsigned device;
    bool isOfPool;
    uint64_t times;
  };
  struct Found {
    uint32_t kind;
    unsigned device;
    uint64_t bytes, offset, size;
  };
  CUresult find(Thread& thread, const SharedName& name, Found& found);
  bool isOurs(const SharedName& name) const;
  CUresult map(Thread& thread, const SharedName& name, const Found& found, bool isOfPool, uint64_t& address);
  CUresult end(Thread& thread, uint64_t address);

  std::mutex changing;
  mutable std::mutex mutex;
  std::map<uint64_t, SharedName> given;                // by address, or an event's or a physical object's handle
  std::map<uint64_t, Taken> taken;                     // memory, by address
  std::atomic<bool> anyGiven{false}, anyTaken{false};  // have ever been any
};

}  // namespace vgpu::client
