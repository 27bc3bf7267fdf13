// Where a user's store of snapshots is (vgpu/store/chunk-store.h).
#pragma once

#include <string>

namespace vgpu {

// The environment's VGPU_STORE, else the user's own: vgpu/store in $XDG_DATA_HOME or ~/.local/share, for root /var/lib/vgpu/store. Throws
// kj::Exception if there is none of these.
std::string snapshotStore();

}  // namespace vgpu
