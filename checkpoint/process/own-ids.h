// A pid namespace for a copy of saved processes: they get their original ids even if other processes have these ids in another namespace.
//
// The namespace's first process is a child of this one, and has its own /proc; all processes in the namespace end with it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

// Calls `body` in the first process of a new namespace; `body` returns that process's exit code. Returns in this process. The child is
// killed when this process ends. Throws kj::Exception if no namespace can be made. This process must have no other threads.
pid_t forkWithOwnIds(const snapshot::ProcessPart& part, const std::function<int()>& body);

// Maps the ids of the processes inside the namespace to their ids here; `first` is the namespace's first process.
std::map<int, pid_t> idsHere(pid_t first);

}  // namespace vgpu::process
