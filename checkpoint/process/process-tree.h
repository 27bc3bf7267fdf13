// Processes and their children, as /proc shows them. What `--process` saves is a tree: a process with all its descendants.
//
// Any thread. What is found may have changed by the time that it is used, unless the processes stand still.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::process {

// Of /proc/PID/stat; empty and 0 if there is no such process.
struct ProcessFacts {
  std::string name;
  char state = 0;
  pid_t parent = 0, session = 0;
  bool isEnding = false;  // it is executed no more
  uint64_t start = 0;     // in clock ticks since boot: with the process id it says which process that is
};
ProcessFacts factsOf(pid_t pid);
// Whether there is no such process, or nothing of it but an exit code, or it is on the way there.
bool hasEnded(pid_t pid);
// "process 7 (app)"
std::string named(pid_t pid);

// Whether a process runs the executable that this process runs, or one of its name: an upgrade replaces the file of a vgpuctl
// that is the parent of a program.
bool runsThisProgram(pid_t pid);

// The root of the tree that a program belongs to: what the nearest vgpuctl above it has started or restored, as this process is a
// vgpuctl; the process itself if there is none above it.
pid_t rootOf(pid_t pid);

// The root first, and each process before its children.
std::vector<pid_t> treeOf(pid_t root);

// Of a clone (`vgpuctl clone`): its process ids are those of a namespace of its own.
bool hasOwnIds(pid_t pid);

}  // namespace vgpu::process
