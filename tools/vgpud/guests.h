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
#include "tools/vgpud/program-link.h"

namespace vgpu::daemon {

class Guests {
 public:
  // Makes the files. Throws kj::Exception if one cannot be made, or is served by another vgpud.
  explicit Guests(const std::vector<std::string>& options);

  // Serves until close(), as long as the promise lives. The guests' programs see `gpus`, which run PTX or not. Once.
  kj::Promise<void> serve(size_t gpus, bool runsPtx, kj::Timer& timer, Processes& processes, const std::string& runDirectory);
  // Starts the process that is the program to this daemon of a session that comes here with its virtual machine's memory. It
  // connects with the daemon's stream socket and shows `token`. Resolves when it has the session's place; rejects, saying why, if
  // that cannot be here.
  struct Newcomer {
    ProgramPlace place;
    std::string name, program;  // as the session has them
    pid_t pid = 0;              // of the program, in the machine
    std::string token;
  };
  kj::Promise<void> expect(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory, Newcomer newcomer);
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
