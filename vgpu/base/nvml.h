// NVML of this host (libnvidia-ml.so.1), loaded and initialized when it is first asked, until the process ends: that takes tens of
// milliseconds. Its header is not part of every toolkit, so who calls a function knows its type. Any thread.
#pragma once

namespace vgpu {

constexpr int nvmlSuccess = 0;

// The function of that name; nullptr if the host has no NVML that works, or an older one without it.
void* nvmlFunction(const char* name);

}  // namespace vgpu
