// `vgpuctl keys`, implemented in vgpu-relay (tools/relay/main.cc).
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace vgpu::keys {

// Adds `keys` to a program's subcommands; `chosen` is set to the action, which returns the exit code.
void addCommands(CLI::App& app, std::function<int()>& chosen);

}  // namespace vgpu::keys
