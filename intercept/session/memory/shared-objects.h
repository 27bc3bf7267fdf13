// What this session shares with other sessions of its user (docs/ipc.md): memory and events that it has given to them under a name, and
// those that it has taken from them.
//
// A name is 16 random bytes. The program passes it on inside a CUDA handle; the daemon finds the object by the name. The worker moves given
// memory into physical memory of its own, and maps taken memory at addresses of the session's arena.
//
// Any thread. Locks: `changing`, held over a change and its calls; then `mutex`, a leaf, which guards the tables. Stays in the program's
// process over a suspend, which is always of all sessions that share (docs/ipc.md): their workers share the same objects again by the
// objects' recipes.
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
  // All return CUDA's results.
  // Gives the allocation that contains `address`.
  CUresult giveMemory(Thread& thread, uint64_t address, SharedName& name);
  // Takes memory; repeated calls return the same address, each to be closed once. `isOfPool`: a free ends it instead.
  CUresult takeMemory(Thread& thread, const SharedName& name, bool isOfPool, uint64_t& address);
  CUresult closeMemory(Thread& thread, uint64_t address, bool isOfPool);
  CUresult giveEvent(Thread& thread, uint64_t event, SharedName& name);
  CUresult takeEvent(Thread& thread, const SharedName& name, uint64_t& event);
  // Physical memory for the program's own mappings.
  CUresult givePhysical(Thread& thread, uint64_t physical, const SharedName& name);
  CUresult takePhysical(Thread& thread, const SharedName& name, uint64_t& physical, uint64_t& bytes);

  // Whether the allocation that starts there is another session's.
  bool isTaken(uint64_t address) const;
  bool isTakenOfPool(uint64_t address) const;
  // Closes it, however often it was opened.
  CUresult closeWhole(Thread& thread, uint64_t address);
  // Whether the allocation that starts there has been given to others: its addresses get other physical memory when it is freed.
  bool isGiven(uint64_t address) const;
  // The allocation or event is being freed. Returns whether it was given to others, who may have it until the worker has freed it.
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
  std::map<uint64_t, SharedName> given;                // by address, or by the handle of an event or physical memory
  std::map<uint64_t, Taken> taken;                     // memory, by address
  std::atomic<bool> anyGiven{false}, anyTaken{false};  // whether there have ever been any
};

}  // namespace vgpu::client
