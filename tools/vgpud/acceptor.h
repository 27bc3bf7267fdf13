// Accepts connections of a listening unix socket, from our own user and root only.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>
#include <kj/function.h>

#include <string>

namespace vgpu::daemon {

// Listens on a new socket file and calls `take` for every connection, as long as the promise lives. Running out of descriptors
// delays new connections and closes none; a connection for which `take` throws is closed.
kj::Promise<void> acceptAll(kj::AsyncIoContext& io, const std::string& path, kj::Function<void(kj::AutoCloseFd)> take);

}  // namespace vgpu::daemon
