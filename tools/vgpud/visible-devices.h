// Which of a node's devices a session has: what its program's CUDA_VISIBLE_DEVICES says, as the driver reads it (CUDA C++ Programming
// Guide, "CUDA Environment Variables").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/vgpud/worker-pool.h"

namespace vgpu::daemon {

// `text`: numbers, or UUIDs or their beginnings ("GPU-..."), with commas between. The first that names no device ends the list.
// The node's devices by their ordinals, in that order; empty if these are all, in their own order. Throws kj::Exception, for a person,
// if it names none, or one twice.
//
// Numbers are those that the daemon's environment means too: where that has CUDA_VISIBLE_DEVICES=2,3 (`own`), the node's first device
// is 2. Null: it has none.
std::vector<uint32_t> visibleDevices(std::string_view text, const std::vector<DeviceInfo>& devices, const char* own = nullptr);

}  // namespace vgpu::daemon
