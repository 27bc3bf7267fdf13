// The parts of vgpuctl's command line that CLI11 cannot parse alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::ctl {

// Puts "--" before the program of `vgpuctl run`, if it is missing, because options after the program's name belong to the program.
// `arguments` excludes vgpuctl's own name.
std::vector<std::string> markProgram(std::vector<std::string> arguments);

// Parses "0=1,1=0" into a list: the node's GPU for each of the program's, notMapped for those that are not named. Throws kj::Exception if
// the text is not valid.
constexpr uint32_t notMapped = ~uint32_t{0};  // as in control.capnp
std::vector<uint32_t> parseDeviceMap(const std::string& text);

}  // namespace vgpu::ctl
