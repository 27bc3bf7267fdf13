// Virtual machines that are about to move (docs/virtual-machines.md): their programs' requests for sessions wait until it is known where
// the machine runs, so that no session begins here whose machine then leaves.
//
// Everything runs in the event loop.
#pragma once

#include <kj/async-io.h>
#include <kj/vector.h>

#include <map>
#include <string>

#include "vgpu/control/control.capnp.h"

namespace vgpu::daemon {

class GuestPauses {
 public:
  explicit GuestPauses(kj::Timer& timer) : timer(timer) {}
  KJ_DISALLOW_COPY(GuestPauses);

  // Runs `open`, which opens a session of this machine, once no pause is active. Rejects if the machine has moved.
  kj::Promise<void> open(std::string guest, kj::Function<kj::Promise<void>()> open);

  // Node.pauseGuest: resolves when no session of the machine is being opened.
  kj::Promise<control::GuestPause::Client> begin(std::string guest);

 private:
  class Pause;
  struct Guest {
    unsigned pauses = 0, openings = 0;
    kj::Vector<kj::Own<kj::PromiseFulfiller<void>>> waiting;
  };
  kj::Promise<void> noneOpening(std::string guest);
  void end(const std::string& guest, bool hasMoved);

  kj::Timer& timer;
  std::map<std::string, Guest> guests;  // by name, for every machine that has ever been served
};

}  // namespace vgpu::daemon
