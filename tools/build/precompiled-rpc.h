// Precompiled headers for files that use Cap'n Proto RPC: its promises and our control interface.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>

#include "precompiled.h"
#include "vgpu/control/control.capnp.h"
