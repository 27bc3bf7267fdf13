// On the host: looks for slots that programs of a virtual machine have taken (vgpu/wire/guest-file.h), and gives each a process,
// which is the program to vgpud (node-side.h).
//
// One process for each virtual machine, one thread; it ends with its vgpud. A process of a session goes on, because a suspended
// session outlives its vgpud; its lock tells later watchers that the slot is served.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "vgpu/wire/guest-file.h"

namespace vgpu::relay {

class GuestWatcher {
 public:
  // What the guest is told, and this process says of it.
  struct About {
    std::string name;  // of the machine, for messages
    uint32_t gpus = 0;
    bool runsPtx = false;
  };
  // `file`: what GuestFile::make() has returned.
  GuestWatcher(kj::AutoCloseFd file, About about, std::string runDirectory);
  // Until the process is ended.
  void run();

 private:
  struct Served {
    uint64_t claim = 0;
    pid_t process = 0;
  };
  bool lookAt(uint64_t slot);
  void serve(uint64_t slot, uint64_t claim, kj::AutoCloseFd locked);
  void reap();

  const std::shared_ptr<GuestFile> file;
  const About about;
  const std::string runDirectory;
  std::vector<Served> served;  // by slot; by this watcher
};

}  // namespace vgpu::relay
