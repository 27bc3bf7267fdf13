// A program as a person means it: what `vgpuctl run` has started, with all its descendants, and the sessions that they have. It
// is saved and restored as a whole (docs/processes.md).
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
  std::vector<TreeSession> sessions;  // the one that was asked for first
};

// Of the session that `session` names, by ids from here on; `directory`: its snapshot's, in which the others' are.
ProgramTree findTree(NodeClient& client, const std::string& session, const std::string& directory);

// Throws kj::Exception, naming all that keeps the tree from being saved. Before anything is asked of the program.
void requireSavable(const ProgramTree& tree, const process::Criu& criu);

// Those that are stopped by a signal, or are sent one that stops them, go on, except some.
void continueProcesses(const std::vector<pid_t>& processes, const std::vector<int>& except);
std::vector<pid_t> processesOf(const snapshot::ProcessPart& part);

// Ends processes that are stopped, the first one last. Throws kj::Exception if one has not ended in 10 s.
void endProcesses(const std::vector<pid_t>& processes);

}  // namespace vgpu::ctl
