// The functions that each fuzz target defines. libFuzzer calls them, and so do the ordinary tests, which need no clang (replay.cc).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vgpu::fuzz {

// Reads the input as the emulated device does. False if it is refused, as most inputs are.
bool accepts(std::span<const uint8_t> input);
// Inputs that are accepted; together they contain every part of the format that has its own reader.
std::vector<std::string> seeds();

}  // namespace vgpu::fuzz
