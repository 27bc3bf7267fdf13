// Bytes of one connection to another and back, until either ends: how the control plane's calls reach a node from elsewhere, and
// how a session's relay reads an encrypted connection that another process has.
#pragma once

#include "vgpu/control/byte-stream.h"

namespace vgpu::relay {

void splice(ByteStream& one, ByteStream& other);

}  // namespace vgpu::relay
