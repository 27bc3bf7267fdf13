// Which sessions can be copied (vgpuctl clone).
#pragma once

#include "vgpu/base/fail.h"
#include "vgpu/snapshot/manifest.h"

namespace vgpu {

// Throws kj::Exception, naming the other session, if this session shares with one: a copy would need copies of all that share.
inline void requireCopyable(const snapshot::Identity& identity) {
  if (identity.sharesWith.empty()) return;
  fail("session " + identity.session + " shares memory or events with session " + identity.sharesWith.front() +
       ": such a session cannot be copied");
}

}  // namespace vgpu
