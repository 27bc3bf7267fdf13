// Order between the work of several devices where CUDA has one: a copy in the null stream between the memories of two devices begins
// when what either has been given before is over, and what either is given later waits for the copy (CUDA C++ Programming Guide,
// "Peer-to-Peer Memory Copy"). The null streams of both stand for all of it, as each waits for its device's other streams.
#pragma once

#include <cstdint>

#include "intercept/session/thread.h"

namespace vgpu::client {

// Lets the current device's null stream wait for those of the devices `others` (a bit each), and these for it. CUDA's error.
CUresult waitForDevices(Thread& thread, uint32_t others);
CUresult letDevicesWait(Thread& thread, uint32_t others);

}  // namespace vgpu::client
