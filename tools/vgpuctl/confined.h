// Runs code that reads files written by a program in a process of its own, so that a crash there ends only that process.
#pragma once

#include <kj/function.h>

#include <string>

namespace vgpu::ctl {

// Runs `action` in a child of this process, with little memory and time, and returns its exit code; `action` may print. Throws
// kj::Exception, naming `what` is read, if the child is ended by a signal (a damaged file makes LMDB access memory beyond it) or
// by a limit. The calling process must have one thread.
int runConfined(const std::string& what, kj::FunctionParam<int()> action);

}  // namespace vgpu::ctl
