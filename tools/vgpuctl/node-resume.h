// A resume as a node does it, and what is looked at before: what `resume` and `clone` share.
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

// The sessions of a snapshot go on, whose programs wait for it, and this is said: its own, and `others` in it. `copies`: of each,
// its own first, a process that was restored as a copy; none: the programs themselves. Throws kj::Exception, and none goes on.
void resumeInNode(const Resume& resume, const std::vector<std::string>& others, const std::vector<pid_t>& copies = {});

std::vector<std::string> othersOf(const snapshot::ProcessPart& part);

// The processes of a snapshot that has some, of which all is as it was saved, and whose files this machine has. Throws
// kj::Exception.
snapshot::ProcessPart requireSound(const Resume& resume, const snapshot::Header& header);

}  // namespace vgpu::ctl
