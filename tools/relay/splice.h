// Bytes of one connection to another and back, until both have ended, or five seconds after the first: how the control plane's
// calls reach a node from elsewhere, and how a session's relay reads an encrypted connection that another process has. When one
// takes nothing more, what it has still said is passed on, as the target of a migration says why.
#pragma once

#include "vgpu/control/byte-stream.h"

namespace vgpu::relay {

void splice(ByteStream& one, ByteStream& other);

}  // namespace vgpu::relay
