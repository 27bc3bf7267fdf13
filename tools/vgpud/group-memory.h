// What the control groups of this process (cgroups(7)) let it have, which is less than the machine has in a container or a job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::daemon {

// In bytes, of the tightest of its own group and those above it; nothing if none has a limit. Pages of files count as available:
// the system drops them. `membership` and `root`: where the system says so, of either version of control groups.
std::optional<uint64_t> groupMemory(const std::string& membership = "/proc/self/cgroup",
                                    const std::string& root = "/sys/fs/cgroup");

}  // namespace vgpu::daemon
