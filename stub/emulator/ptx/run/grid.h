// One grid of a launch and of what it launches.
#pragma once

#include "stub/emulator/ptx/run/device-launches.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {

constexpr size_t mostOutput = 64 << 20;  // bytes of printf output that a launch keeps; its context keeps less

// Runs the grid's own blocks to the end or to the first fault. `launched` becomes what they leave to be done.
std::optional<Fault> runGrid(const Launch&, WaitingWork&, std::string& output, DeviceLaunches::Work& launched);

}  // namespace vgpu::emulator
