// Accepts connections on a listening socket.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/function.h>

#include <string>

namespace vgpu::daemon {

// Calls `take` for every connection to `listener`, which must be non-blocking, as long as the promise lives. If the process runs out of
// descriptors, new connections wait and none is closed; a connection for which `take` throws is closed. `name`: for messages.
kj::Promise<void> acceptFrom(kj::AsyncIoContext& io, kj::AutoCloseFd listener, const std::string& name,
                             kj::Function<void(kj::AutoCloseFd)> take);

// As acceptFrom(), on a new socket file; accepts connections only from our own user and root.
kj::Promise<void> acceptAll(kj::AsyncIoContext& io, const std::string& path, kj::Function<void(kj::AutoCloseFd)> take);

}  // namespace vgpu::daemon
