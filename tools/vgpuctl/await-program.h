// Waiting for a program whose parent is vgpuctl: `run` has started it, or `resume` has restored it.
#pragma once

#include <signal.h>
#include <sys/types.h>

#include <string>

namespace vgpu::ctl {

// While this object lives, the signals that a parent forwards, and those that it waits for, are blocked in this process. Make it before the
// program starts, so that no signal is missed.
class ParentSignals {
 public:
  ParentSignals();
  ~ParentSignals();
  ParentSignals(const ParentSignals&) = delete;
  ParentSignals& operator=(const ParentSignals&) = delete;

  // Forwards signals until the program has ended. Returns the exit code for it: its own, or 128 + n if signal n killed it, which is
  // reported on stderr with `name`, unless its process was saved.
  int await(pid_t program, const std::string& name) const;

 private:
  sigset_t watched, before;
};

// Tells the program's parent, if that is a vgpuctl too, that the program is saved and is being ended. The parent then writes nothing to
// stderr, because that may be a file of the program, which must be unchanged when the program is restored.
void tellParentSaved(pid_t program);

}  // namespace vgpu::ctl
