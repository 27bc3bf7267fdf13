// A pid namespace for a copy of saved processes: they get the ids that they had, beside others that have these in another
// namespace.
//
// Its first process is a child of this one, and has a /proc of its own; all that is in the namespace ends with it.
#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

// Calls `body` in the first process of a new namespace, which returns its exit code; this process goes on. The child is killed
// when this process ends. Throws kj::Exception if there can be no namespace. Not while this process has threads.
pid_t forkWithOwnIds(const snapshot::ProcessPart& part, const std::function<int()>& body);

// The ids here of the processes in the namespace whose first process is `first`, by their ids there.
std::map<int, pid_t> idsHere(pid_t first);

}  // namespace vgpu::process
