// Which of a node's devices a session has: what its program's CUDA_VISIBLE_DEVICES says, as the driver reads it (CUDA C++ Programming
// Guide, "CUDA Environment Variables").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/vgpud/worker-pool.h"

namespace vgpu::daemon {

struct VisibleDevices {
  std::vector<uint32_t> ordinals;  // of the node's devices, in the order of the list; empty if these are all, in their own order
  std::string refusal;             // for a person, if the list names no device, or one twice
  bool isInvalid = false;          // one twice: CUDA answers CUDA_ERROR_INVALID_DEVICE, else CUDA_ERROR_NO_DEVICE
};

// `text`: numbers, or UUIDs or their beginnings ("GPU-..."), with commas between. The first that names no device ends the list.
//
// Numbers are those that the daemon's environment means too: where that has CUDA_VISIBLE_DEVICES=2,3 (`own`), the node's first device
// is 2. Null: it has none.
VisibleDevices visibleDevices(std::string_view text, const std::vector<DeviceInfo>& devices, const char* own = nullptr);

}  // namespace vgpu::daemon
