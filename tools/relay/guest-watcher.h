// On the host: watches for slots that programs of a virtual machine have claimed (vgpu/wire/guest-file.h), and starts a process for each,
// which acts as the program towards vgpud (node-side.h).
//
// One process for each virtual machine, one thread; it ends with its vgpud. The processes of sessions go on, because a suspended session
// outlives its vgpud; their locks tell later watchers that their slots are served.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "vgpu/wire/guest-file.h"

namespace vgpu::relay {

class GuestWatcher {
 public:
  // The description that the guest gets, and that log messages use.
  struct About {
    std::string name;  // of the machine, for log messages
    uint32_t gpus = 0;
    bool runsPtx = false;
  };
  // `file`: from GuestFile::make().
  GuestWatcher(kj::AutoCloseFd file, About about, std::string runDirectory);
  // Runs until the process is ended.
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
  std::vector<Served> served;  // by slot; served by this watcher
};

}  // namespace vgpu::relay
