// Which of a node's devices a session has, according to its program's CUDA_VISIBLE_DEVICES, interpreted as by the driver (CUDA C++
// Programming Guide, "CUDA Environment Variables").
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tools/vgpud/worker-pool.h"

namespace vgpu::daemon {

struct VisibleDevices {
  std::vector<uint32_t> ordinals;  // of the node's devices, in the order of the list; empty if these are all devices in their own order
  std::string refusal;             // a message, if the list names no device, or one twice
  bool isInvalid = false;          // a device twice: CUDA returns CUDA_ERROR_INVALID_DEVICE, otherwise CUDA_ERROR_NO_DEVICE
};

// `text`: numbers, UUIDs or prefixes of them ("GPU-..."), separated by commas. The list ends at the first item that names no device.
//
// Numbers are those of the daemon's environment: if that has CUDA_VISIBLE_DEVICES=2,3 (`own`), the node's first device is number 2. Null:
// the variable is not set.
VisibleDevices visibleDevices(std::string_view text, const std::vector<DeviceInfo>& devices, const char* own = nullptr);

}  // namespace vgpu::daemon
