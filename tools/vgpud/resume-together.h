// The sessions of one tree of processes (docs/processes.md), or that share with each other (docs/ipc.md): their programs go on
// together, or none does.
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

// As resume(), of all of them. Rejects with the first reason; each program is suspended as before then.
kj::Promise<kj::Array<Resumed>> resumeTogether(Sessions& sessions, std::vector<TreeMember> members,
                                               control::Progress::Client progress, std::vector<uint32_t> devices);

}  // namespace vgpu::daemon
