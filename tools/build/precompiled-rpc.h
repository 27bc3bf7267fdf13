// The same for what speaks to other processes by Cap'n Proto's RPC: its promises and our control interface.
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/async-unix.h>

#include "precompiled.h"
#include "vgpu/control/control.capnp.h"
