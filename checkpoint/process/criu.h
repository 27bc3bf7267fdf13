// CRIU, which saves a process with all its memory, descriptors and threads, and restores it (https://criu.org). It is a separate program,
// looked for in VGPU_CRIU, then where tools/setup builds one, then in PATH; version 4 or newer.
//
// It runs as a child of this process. Any thread; one call at a time per folder.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

class Criu {
 public:
  // Throws kj::Exception that says what to do if CRIU is missing, too old, or does not work on this machine (`criu check`).
  static Criu find();

  const std::string& version() const { return versionText; }

  // Whether it can save TCP and UDP sockets on this kernel: since Linux 6.16 these have no SO_PASSCRED, which CRIU before 4.2.1 reads from
  // every socket.
  bool savesNetworkSockets() const;

  // Writes the image of a process tree into `folder`, and leaves the processes stopped. Throws kj::Exception with CRIU's reason; the
  // processes then go on as before. `isShellJob`: as ProcessPart::shellJob.
  void dump(pid_t root, const std::string& folder, bool isShellJob) const;

  // Restores the processes with the same process ids, the root as a child of this process (and on its terminal if it had one), and leaves
  // them stopped. Throws kj::Exception with CRIU's reason; none of the processes is left then.
  void restore(const std::string& folder, const snapshot::ProcessPart& part) const;

 private:
  Criu(std::string path, std::string version) : path(std::move(path)), versionText(std::move(version)) {}
  void run(const std::string& doing, std::vector<std::string> arguments, bool ownGroup) const;

  std::string path, versionText;
};

}  // namespace vgpu::process
