// CRIU, which saves a process with all its memory, descriptors and threads, and restores it (https://criu.org). It is a program
// of its own, found as VGPU_CRIU says, else where tools/setup has built one, else in PATH; version 4 or newer.
//
// It runs as a child of this process. Thread: any; one call at a time in a folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

class Criu {
 public:
  // Throws kj::Exception that says what to do if it is missing, too old, or cannot work on this machine (`criu check`).
  static Criu find();

  const std::string& version() const { return versionText; }

  // Whether it saves sockets of TCP and UDP on this kernel: since Linux 6.16 these have no SO_PASSCRED, which CRIU before 4.2.1
  // reads of every socket.
  bool savesNetworkSockets() const;

  // Writes the image of a tree of processes into `folder`, and leaves them stopped. Throws kj::Exception with CRIU's reason; they
  // go on as before then. `isShellJob`: as ProcessPart::shellJob.
  void dump(pid_t root, const std::string& folder, bool isShellJob) const;

  // Restores the processes, with the same process ids, the root as a child of this process, whose terminal it gets if it had one,
  // and leaves them stopped. Throws kj::Exception with CRIU's reason; nothing is left of them then.
  void restore(const std::string& folder, const snapshot::ProcessPart& part) const;

 private:
  Criu(std::string path, std::string version) : path(std::move(path)), versionText(std::move(version)) {}
  void run(const std::string& doing, std::vector<std::string> arguments, bool ownGroup) const;

  std::string path, versionText;
};

}  // namespace vgpu::process
