// A resume by a node, and the checks before it: shared by `resume` and `clone`.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tools/common/node-address.h"
#include "vgpu/snapshot/process-part.h"

namespace vgpu::ctl {

struct Resume {
  const NodeAddress& address;
  std::string directory;  // of the snapshot
  std::vector<uint32_t> devices;
  bool json = false;
};

// Resumes the sessions of a snapshot whose programs wait for it, its own and the `others` in it, and prints the result. `copies`: for each
// session, its own first, a process that was restored as a copy; empty: the original programs. Throws kj::Exception, and none is resumed.
void resumeInNode(const Resume& resume, const std::vector<std::string>& others, const std::vector<pid_t>& copies = {});

std::vector<std::string> othersOf(const snapshot::ProcessPart& part);

// Verifies the processes of a snapshot: that they are stored unchanged, and that this machine has their files. Throws kj::Exception.
snapshot::ProcessPart requireSound(const Resume& resume, const snapshot::Header& header);

}  // namespace vgpu::ctl
