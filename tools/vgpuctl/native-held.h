// The processes that a save of a native program holds: locked or taken by the driver, and stopped by CRIU. They are continued after an
// error, and after a save that was killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "checkpoint/process/driver-checkpoint.h"
#include "tools/vgpuctl/native-list.h"

namespace vgpu::ctl {

// For a running tree.
NativeHeld heldOf(pid_t root, const std::vector<pid_t>& users);

// Continues the processes that have not ended, and gives them back what they had on their GPUs. Returns what prevents that for one of them;
// empty if nothing does.
std::string releaseHeld(const process::DriverCheckpoint& driver, const NativeHeld& held);

// If a save to this folder was killed: continues the processes that it holds, and removes an unfinished snapshot. If the snapshot was
// complete, it stays; and if some of its processes had been ended, the others are ended too. Returns whether they were continued, which is
// printed. Throws kj::Exception if one cannot be continued, or if the save is still running.
bool putRightNative(const std::string& directory);

}  // namespace vgpu::ctl
