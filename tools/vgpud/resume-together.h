// Resumes the sessions of one process tree (docs/processes.md), or sessions that share with each other (docs/ipc.md): all their programs go
// on, or none does.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "tools/vgpud/resume.h"

namespace vgpu::daemon {

struct TreeMember {
  std::string directory;  // of its snapshot
  pid_t copy = 0;         // a parked process that is a copy of the snapshot's program; 0: the program itself
};

// Like resume(), for all of them. Rejects with the first reason; each program is then suspended as before.
kj::Promise<kj::Array<Resumed>> resumeTogether(Sessions& sessions, std::vector<TreeMember> members,
                                               control::Progress::Client progress, std::vector<uint32_t> devices);

}  // namespace vgpu::daemon
