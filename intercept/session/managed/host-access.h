// The program's access to pages of managed memory.
#pragma once

#include <cstdint>

namespace vgpu::client {

enum class HostAccess : uint8_t { none, read, write };

}  // namespace vgpu::client
