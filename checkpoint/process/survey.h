// What /proc says of a tree of processes (process-tree.h): whether it can be saved, and what a machine must have on which it is
// restored.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/process/process-tree.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

// What keeps the tree from being saved with CRIU, each as a sentence; CRIU itself may know more. Of processes that run.
// `savesNetworkSockets`: as Criu says. Throws kj::Exception if we may not look into one.
std::vector<std::string> obstaclesOf(pid_t root, bool savesNetworkSockets = true);

// All but `criu`, `images`, `stopped` and `sessions`, of a tree that stands still. Reads files that the processes have mapped.
snapshot::ProcessPart describe(pid_t root);

// Those of the tree that are stopped by a signal.
std::vector<int> stoppedIn(pid_t root);

// Whether the session of the tree's root is led by a process that is not in the tree: a shell, of a terminal or not.
bool isShellJob(pid_t root);

// Throws kj::Exception, naming what differs, unless this machine has all files that the processes have mapped, as they were;
// and unless their ids are free.
void requireSameFiles(const snapshot::ProcessPart& part);
void requireFreeIds(const snapshot::ProcessPart& part);

}  // namespace vgpu::process
