// What the worker's driver has logged of calls that failed (cuLogs*), until the program asks for it.
//
// The driver and so this are of the process; any thread. It begins anew with each session, and a suspend keeps nothing of it.
#pragma once

#include <string>

#include "stub/driver/driver.h"

namespace vgpu::stub {

// Collects from now on, if the driver has a log, and forgets what was collected before.
void collectLog(const Driver& driver);
// Lines, each with a newline behind it; the newest 25,600 bytes of what has come since the last call.
std::string takeLog();

}  // namespace vgpu::stub
