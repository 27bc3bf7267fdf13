// `vgpuctl keys`, which vgpu-relay carries out (tools/relay/main.cc).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace vgpu::keys {

// Adds `keys` to a program's subcommands; `chosen` becomes what to do, and returns the exit code.
void addCommands(CLI::App& app, std::function<int()>& chosen);

}  // namespace vgpu::keys
