// What a fuzz target of this folder gives. libFuzzer and the ordinary tests, which need no clang (replay.cc), feed it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace vgpu::fuzz {

// Reads the input as the emulated device would. False where it is refused, as most inputs deserve.
bool accepts(std::span<const uint8_t> input);
// Inputs that are accepted: every part of the format that has a reader of its own is in one of them.
std::vector<std::string> seeds();

}  // namespace vgpu::fuzz
