// The memory limits of this process's control groups (cgroups(7)): in a container or a job, less than the machine's memory.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace vgpu::daemon {

// In bytes: the tightest limit of its own group and those above it, and what is available within it; nothing if none has a limit. Page
// cache counts as available, because the system drops it. `membership` and `root`: where the system reports control groups, for both
// versions.
std::optional<uint64_t> groupMemory(const std::string& membership = "/proc/self/cgroup",
                                    const std::string& root = "/sys/fs/cgroup");

}  // namespace vgpu::daemon
