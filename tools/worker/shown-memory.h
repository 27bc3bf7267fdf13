// Device memory that one worker shows another, through a socket whose ends the daemon has given them (checkpoint/twin-memory.h).
#pragma once

#include <kj/io.h>

#include <vector>

#include "checkpoint/twin-memory.h"

namespace vgpu::stub {

// Gives up, and says so in the log, if the other worker takes nothing for a while.
void sendShown(kj::AutoCloseFd socket, const std::vector<checkpoint::TwinMemory>& memory);

// All that comes, until the other worker has closed its end, is invalid, or sends nothing for a while.
std::vector<checkpoint::TwinMemory> receiveShown(kj::AutoCloseFd socket);

}  // namespace vgpu::stub
