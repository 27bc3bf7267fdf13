// A process for what reads files that a program wrote: what happens to it there happens to nobody else.
#pragma once

#include <kj/function.h>

#include <string>

namespace vgpu::ctl {

// Runs `action` in a child of this process, with little memory and time, and returns its exit code; `action` may print.
// Throws kj::Exception, naming `what` is read, where the child is ended by a signal (what was damaged leads LMDB out of its
// file) or by a limit. The calling process must have one thread.
int runConfined(const std::string& what, kj::FunctionParam<int()> action);

}  // namespace vgpu::ctl
