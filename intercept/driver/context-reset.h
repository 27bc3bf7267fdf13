// Taking a device's context down: what the program made on it goes, and a context that a fault has ended is made anew.
#pragma once

#include "intercept/session/thread.h"

namespace vgpu {

// Destroys what the program has made on `device`, as the end of a context does. CUDA's answer.
CUresult resetContext(Thread& thread, unsigned device);

}  // namespace vgpu
