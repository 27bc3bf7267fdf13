// Bytes of one connection to another and back, until either ends: how the control plane's calls reach a node from elsewhere.
#pragma once

#include <kj/io.h>

namespace vgpu::relay {

void splice(kj::AutoCloseFd one, kj::AutoCloseFd other);

}  // namespace vgpu::relay
