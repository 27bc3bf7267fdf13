// What the driver has logged about failed calls (cuLogs*), until the program asks for it.
//
// The driver's log, and so this one, belongs to the process; any thread. Emptied for each session; a suspend keeps nothing of it.
#pragma once

#include <string>

#include "stub/driver/driver.h"

namespace vgpu::stub {

// Starts collecting, if the driver has a log, and discards what was collected before.
void collectLog(const Driver& driver);
// Lines, each with a newline at its end; the newest 25,600 bytes of what has been logged since the last call.
std::string takeLog();

}  // namespace vgpu::stub
