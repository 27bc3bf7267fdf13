// What /proc says of a process: whether it can be saved, and what a machine must have on which it is restored.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "vgpu/snapshot/process-part.h"

namespace vgpu::process {

// What keeps the process from being saved with CRIU, each as a sentence; CRIU itself may know more. Of a process that runs.
// Throws kj::Exception if we may not look into it.
std::vector<std::string> obstaclesOf(pid_t pid);

// All but `criu` and `images`, of a process that stands still. Reads files that it has mapped.
snapshot::ProcessPart describe(pid_t pid);

// Whether another process leads its session: a shell, of a terminal or not.
bool isShellJob(pid_t pid);

// Throws kj::Exception, naming what differs, unless this machine has all files that the process has mapped, as they were; and
// unless its ids are free.
void requireSameFiles(const snapshot::ProcessPart& part);
void requireFreeIds(const snapshot::ProcessPart& part);

// Of /proc/PID/stat; empty and 0 if there is no such process.
struct ProcessFacts {
  std::string name;
  char state = 0;
  pid_t parent = 0, session = 0;
};
ProcessFacts factsOf(pid_t pid);

}  // namespace vgpu::process
