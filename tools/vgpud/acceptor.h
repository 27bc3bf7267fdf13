// Accepts connections of a listening socket.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/function.h>

#include <string>

namespace vgpu::daemon {

// Calls `take` for every connection to `listener`, which is non-blocking, as long as the promise lives. Running out of
// descriptors delays new connections and closes none; a connection for which `take` throws is closed. `name`: for messages.
kj::Promise<void> acceptFrom(kj::AsyncIoContext& io, kj::AutoCloseFd listener, const std::string& name,
                             kj::Function<void(kj::AutoCloseFd)> take);

// The same of a new socket file, for connections from our own user and root only.
kj::Promise<void> acceptAll(kj::AsyncIoContext& io, const std::string& path, kj::Function<void(kj::AutoCloseFd)> take);

}  // namespace vgpu::daemon
