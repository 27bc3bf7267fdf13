// Examines a tree of processes (process-tree.h) through /proc: whether it can be saved, and what a machine must have for it to be restored
// there.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/process/process-tree.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

// What prevents saving the tree with CRIU, each obstacle as a sentence; CRIU itself may find more. The processes may run.
// `savesNetworkSockets`: from Criu. Throws kj::Exception if we may not inspect a process.
std::vector<std::string> obstaclesOf(pid_t root, bool savesNetworkSockets = true);

// Everything except `criu`, `images`, `stopped` and `sessions`, for a stopped tree. Reads files that the processes have mapped.
snapshot::ProcessPart describe(pid_t root);

// The processes of the tree that are stopped by a signal.
std::vector<int> stoppedIn(pid_t root);

// Whether the session leader of the tree's root is a process outside of the tree, such as a shell, with or without a terminal.
bool isShellJob(pid_t root);

// These throw kj::Exception, naming the difference, unless this machine has all files that the processes have mapped, unchanged; and unless
// their ids are free.
void requireSameFiles(const snapshot::ProcessPart& part);
void requireFreeIds(const snapshot::ProcessPart& part);

}  // namespace vgpu::process
