// The virtual machines whose programs this daemon serves (vgpud --guest, docs/virtual-machines.md): owns the file of each, and a
// process for each, vgpu-relay, which looks for sessions there and is the program to this daemon. No byte of a guest's is read
// here.
#pragma once

#include <kj/async-io.h>
#include <kj/io.h>

#include <string>
#include <vector>

#include "tools/common/spawn.h"
#include "tools/vgpud/options.h"
#include "tools/vgpud/processes.h"

namespace vgpu::daemon {

class Guests {
 public:
  // Makes the files. Throws kj::Exception if one cannot be made, or is served by another vgpud.
  explicit Guests(const std::vector<std::string>& options);

  // Serves until close(), as long as the promise lives. The guests' programs see `gpus`, which run PTX or not. Once.
  kj::Promise<void> serve(size_t gpus, bool runsPtx, kj::Timer& timer, Processes& processes, const std::string& runDirectory);
  // Ends the processes that look for sessions. The sessions go on.
  void close();

 private:
  struct Guest {
    GuestOption option;
    kj::AutoCloseFd file;  // locked: one vgpud serves it
    pid_t process = 0;
  };
  kj::Promise<void> watch(Guest& guest, SpawnRequest request, kj::Timer& timer, Processes& processes);

  std::vector<Guest> guests;
  bool isClosing = false;
};

}  // namespace vgpu::daemon
