// The location of a user's store of snapshots (vgpu/store/chunk-store.h).
#pragma once

#include <string>

namespace vgpu {

// VGPU_STORE, else the user's default: vgpu/store in $XDG_DATA_HOME or ~/.local/share, for root /var/lib/vgpu/store. Throws kj::Exception
// if none of these can be determined.
std::string snapshotStore();

}  // namespace vgpu
