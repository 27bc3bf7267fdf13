// A program from the user's point of view: the process that `vgpuctl run` has started, with all its descendants, and their sessions. It is
// saved and restored as a whole (docs/processes.md).
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/process/criu.h"
#include "tools/common/node-client.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {

struct TreeSession {
  std::string id, name, program;
  std::string directory;  // of its snapshot
  pid_t pid = 0;
};

struct ProgramTree {
  pid_t root = 0;
  std::vector<TreeSession> sessions;  // beginning with the requested one
};

// The tree of the program of session `session`; it uses ids from here on. `directory`: of that session's snapshot, which contains the other
// sessions' snapshots.
ProgramTree findTree(NodeClient& client, const std::string& session, const std::string& directory);

// Throws kj::Exception, naming everything that prevents saving the tree. Call it before the program is asked to do anything.
void requireSavable(const ProgramTree& tree, const process::Criu& criu);

// Continues the processes that are stopped by a signal, or that have been sent a stopping one, except `except`.
void continueProcesses(const std::vector<pid_t>& processes, const std::vector<int>& except);
std::vector<pid_t> processesOf(const snapshot::ProcessPart& part);

// Ends stopped processes, the first one last. Throws kj::Exception if one has not ended within 10 s.
void endProcesses(const std::vector<pid_t>& processes);

}  // namespace vgpu::ctl
