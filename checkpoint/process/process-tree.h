// Processes and their children, from /proc. What `--process` saves is a tree: a process with all its descendants.
//
// Any thread. The results may be outdated when they are used, unless the processes are stopped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::process {

// From /proc/PID/stat; empty and 0 if there is no such process.
struct ProcessFacts {
  std::string name;
  char state = 0;
  pid_t parent = 0, session = 0;
  bool isEnding = false;  // it executes no more code
  uint64_t start = 0;     // in clock ticks since boot: together with the process id it identifies the process
};
ProcessFacts factsOf(pid_t pid);
// Whether the process does not exist, is a zombie, or is exiting.
bool hasEnded(pid_t pid);
// "process 7 (app)"
std::string named(pid_t pid);

// Whether a process executes the same executable as this process, or one of the same name: an upgrade may have replaced the file of a
// vgpuctl that is a program's parent.
bool runsThisProgram(pid_t pid);

// The root of the process tree that a program belongs to: the process that its nearest vgpuctl ancestor has started or restored; the
// process itself if it has no such ancestor. This process must be a vgpuctl.
pid_t rootOf(pid_t pid);

// The root first; each process before its children.
std::vector<pid_t> treeOf(pid_t root);

// Whether it belongs to a clone (`vgpuctl clone`), whose process ids are those of a separate namespace.
bool hasOwnIds(pid_t pid);

}  // namespace vgpu::process
