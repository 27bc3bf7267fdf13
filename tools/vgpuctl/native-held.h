// The processes that a save of a native program holds: locked or taken by the driver, and stopped by CRIU. They go on after an
// error, and after a save that was killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/process/driver-checkpoint.h"
#include "tools/vgpuctl/native-list.h"

namespace vgpu::ctl {

// Of a tree that runs.
NativeHeld heldOf(pid_t root, const std::vector<pid_t>& users);

// Those that have not ended go on, with what they had on their GPUs. Returns what keeps one from that; empty if nothing does.
std::string releaseHeld(const process::DriverCheckpoint& driver, const NativeHeld& held);

// If a save to this folder was killed: what it holds goes on, and nothing of an unfinished snapshot is left. If the snapshot was
// whole, it stays, and if some of its processes had been ended, the others are too. Returns whether they go on, which is said to
// the person. Throws kj::Exception if one does not, or the save is under way.
bool putRightNative(const std::string& directory);

}  // namespace vgpu::ctl
