// One grid of a launch by the host or by a kernel.
#pragma once

#include "stub/emulator/ptx/run/device-launches.h"
#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {

constexpr size_t mostOutput = 64 << 20;  // bytes of printf output that a launch keeps; the limit of its context is lower

// Runs the grid's own blocks to the end or to the first fault. `launched`: the work that they leave.
std::optional<Fault> runGrid(const Launch&, WaitingWork&, std::string& output, DeviceLaunches::Work& launched);

}  // namespace vgpu::emulator
