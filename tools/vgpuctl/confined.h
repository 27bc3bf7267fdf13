// Runs code that reads files written by a program in a separate process, so that a crash there ends only that process.
#pragma once

#include <kj/function.h>

#include <string>

namespace vgpu::ctl {

// Runs `action` in a child of this process, with limited memory and time, and returns its exit code; `action` may print. Throws
// kj::Exception, with `what` in the message, if a signal (a damaged file makes LMDB access memory beyond it) or a limit ends the child. The
// calling process must have only one thread.
int runConfined(const std::string& what, kj::FunctionParam<int()> action);

}  // namespace vgpu::ctl
