// vgpuctl's command line, as far as a library cannot read it alone.
#pragma once

#include <string>
#include <vector>

namespace vgpu::ctl {

// Puts "--" before the program of `vgpuctl run`, if it is missing: options after the program's name are the program's.
// `arguments` come without vgpuctl's own name.
std::vector<std::string> markProgram(std::vector<std::string> arguments);

}  // namespace vgpu::ctl
