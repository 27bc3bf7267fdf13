// For behaviour of a session that CUDA leaves undefined, or that a driver gets wrong: some checks are made in a session only.
#pragma once

#include <cstdlib>

// Whether the program runs in a session of vgpu, rather than natively.
inline const bool inSession = std::getenv("VGPU_NODE") != nullptr;
