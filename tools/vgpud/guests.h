// The virtual machines whose programs this daemon serves (vgpud --guest, docs/virtual-machines.md): owns the shared file of each, and a
// process for each, vgpu-relay, which looks for sessions there and acts as their programs towards this daemon. The daemon itself reads
// nothing that a guest writes.
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
  // Makes or opens the files. Throws kj::Exception if that fails, or if another vgpud serves a file.
  explicit Guests(const std::vector<std::string>& options);

  // Serves until close(), as long as the promise lives. The guests' programs see `gpus` GPUs, which run PTX or not. Call it once.
  kj::Promise<void> serve(size_t gpus, bool runsPtx, kj::Timer& timer, Processes& processes, const std::string& runDirectory);
  // Starts a process that acts as the program of a session that comes here with its virtual machine's memory. It connects to the daemon's
  // stream socket and shows `token`. Resolves when it has claimed the session's place; rejects, with the reason, if the session cannot come
  // here.
  struct Newcomer {
    ProgramPlace place;
    std::string name, program;  // of the session
    pid_t pid = 0;              // of the program, inside the machine
    std::string token;
  };
  kj::Promise<void> expect(kj::AsyncIoContext& io, Processes& processes, const std::string& runDirectory, Newcomer newcomer);
  // Ends the processes that look for sessions. Running sessions go on.
  void close();

 private:
  struct Guest {
    GuestOption option;
    kj::AutoCloseFd file;  // locked, so that only one vgpud serves it
    pid_t process = 0;
  };
  kj::Promise<void> watch(Guest& guest, SpawnRequest request, kj::Timer& timer, Processes& processes);

  std::vector<Guest> guests;
  bool isClosing = false;
};

}  // namespace vgpu::daemon
