// Names of functions and variables, as a program gives them.
#pragma once

#include <cstddef>

namespace vgpu::client {

// The longest that a frame carries.
constexpr size_t maxNameBytes = 32 * 1024;

}  // namespace vgpu::client
