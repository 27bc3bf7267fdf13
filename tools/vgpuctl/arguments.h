// vgpuctl's command line, as far as a library cannot read it alone.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace vgpu::ctl {

// Puts "--" before the program of `vgpuctl run`, if it is missing: options after the program's name are the program's.
// `arguments` come without vgpuctl's own name.
std::vector<std::string> markProgram(std::vector<std::string> arguments);

// "0=1,1=0" as a list: the GPU of the node for each of the program's, notMapped for those that are not named. Throws
// kj::Exception if it is none.
constexpr uint32_t notMapped = ~uint32_t{0};  // as in control.capnp
std::vector<uint32_t> parseDeviceMap(const std::string& text);

}  // namespace vgpu::ctl
