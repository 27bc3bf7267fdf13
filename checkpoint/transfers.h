// Copies between device memory and the slots of a ring that are on their way.
//
// Kinds start them in their GPU's stream for that (stub/worker/kinds/kind.h); this says which slots they have left. Of the one
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
  // After all copies, also where the work has failed: none may come to memory that somebody else has by then.
  ~Transfers();
  Transfers(const Transfers&) = delete;
  Transfers& operator=(const Transfers&) = delete;

  // The copies of `device` so far are those of `slot`.
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
  std::vector<CUevent> pending = std::vector<CUevent>(slots);  // by slot: null if nothing is on its way
};

}  // namespace vgpu::checkpoint
