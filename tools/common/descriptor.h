// File descriptors passed through Cap'n Proto RPC as capabilities.
#pragma once

#include <kj/async.h>
#include <kj/io.h>

#include "vgpu/control/control.capnp.h"

namespace vgpu {

// The most descriptors in a message between a daemon and its worker: the streams of a migration, and a folder.
constexpr unsigned descriptorsPerMessage = 8;

class PassedDescriptor final : public control::Descriptor::Server {
 public:
  explicit PassedDescriptor(kj::AutoCloseFd fd) : fd(kj::mv(fd)) {}
  kj::Maybe<int> getFd() override { return fd.get(); }

 private:
  kj::AutoCloseFd fd;
};

// A duplicate of `fd`, owned by the caller. Throws kj::Exception.
kj::AutoCloseFd duplicate(int fd);

// A duplicate of the message's descriptor, because the capability ends with the message. Rejects if the capability has no descriptor.
kj::Promise<kj::AutoCloseFd> receiveDescriptor(control::Descriptor::Client descriptor);

}  // namespace vgpu
