// Names of functions and variables that a program passes.
#pragma once

#include <cstddef>

namespace vgpu::client {

// The longest name that a frame carries.
constexpr size_t maxNameBytes = 32 * 1024;

}  // namespace vgpu::client
