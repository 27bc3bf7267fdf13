// Waiting for a program that vgpuctl is the parent of: `run` has started it, `resume` restored it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>

namespace vgpu::ctl {

// While it lives, the signals that a parent passes on, and those that it waits for, are blocked in this process: from before the
// program begins, so that none is missed.
class ParentSignals {
 public:
  ParentSignals();
  ~ParentSignals();
  ParentSignals(const ParentSignals&) = delete;
  ParentSignals& operator=(const ParentSignals&) = delete;

  // Passes signals on until the program has ended. The exit code for it: its own, or 128 + n if signal n killed it, which is said
  // on stderr, as `name`, unless its process was saved.
  int await(pid_t program, const std::string& name) const;

 private:
  sigset_t watched, before;
};

// Tells a program's parent, if that is a vgpuctl as this one, that the program is saved and is being ended: it writes nothing
// then, because its stderr may be a file of the program's, which must be as it was when the program is restored.
void tellParentSaved(pid_t program);

}  // namespace vgpu::ctl
