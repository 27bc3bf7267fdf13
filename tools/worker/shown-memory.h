// One worker shows its device memory to another, through a socket whose ends the daemon has given them (checkpoint/twin-memory.h).
#pragma once

#include <kj/io.h>

#include <vector>

#include "checkpoint/twin-memory.h"

namespace vgpu::stub {

// Gives up, with a log message, if the other worker reads nothing for a while.
void sendShown(kj::AutoCloseFd socket, const std::vector<checkpoint::TwinMemory>& memory);

// Receives until the other worker closes its end, sends something invalid, or sends nothing for a while.
std::vector<checkpoint::TwinMemory> receiveShown(kj::AutoCloseFd socket);

}  // namespace vgpu::stub
