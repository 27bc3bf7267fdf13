// Tracks the copies in flight between device memory and the slots of a ring.
//
// Kinds start the copies in a stream of their GPU (stub/worker/kinds/kind.h); this class knows which slots they still use. For the one
// thread that saves or restores.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <map>
#include <vector>

#include "stub/worker/session-state.h"

namespace vgpu::checkpoint {

class Transfers {
 public:
  Transfers(stub::SessionState& on, size_t slots) : on(on), slots(slots) {}
  // Waits for all copies, also after a failure: none may write to memory that has been reused by then.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // Marks the copies that `device` has begun so far as those of `slot`.
  void mark(size_t slot, unsigned device);
  // Waits for the copies of `slot`. Throws kj::Exception if one failed.
  void await(size_t slot);

 private:
  struct OfDevice {
    std::vector<CUevent> events;  // by slot
  };
  stub::SessionState& on;
  const size_t slots;
  std::map<unsigned, OfDevice> devices;
  std::vector<CUevent> pending = std::vector<CUevent>(slots);  // by slot: null if no copy is in flight
};

}  // namespace vgpu::checkpoint
