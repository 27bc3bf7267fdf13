// Copies the bytes of two connections to each other, until both have ended, or for five seconds after the first has ended. Used to pass
// control plane calls to a node elsewhere, and to let a session's relay use an encrypted connection of another process. When one side takes
// nothing more, what it still sends is passed on, for example the reason of a migration's target.
#pragma once

#include "vgpu/control/byte-stream.h"

namespace vgpu::relay {

void splice(ByteStream& one, ByteStream& other);

}  // namespace vgpu::relay
