// For what a session does and CUDA leaves open, or does wrong: some checks are for programs in a session only.
#pragma once

#include <cstdlib>

// Whether the program runs in a session of vgpu, rather than natively.
inline const bool inSession = std::getenv("VGPU_NODE") != nullptr;
