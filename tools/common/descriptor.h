// File descriptors that go with Cap'n Proto RPC as capabilities.
#pragma once

#include <kj/async.h>
#include <kj/io.h>

#include "vgpu/control/control.capnp.h"

namespace vgpu {

// Of a message between a daemon and its worker, at most: the streams of a migration, and a folder.
constexpr unsigned descriptorsPerMessage = 8;

class PassedDescriptor final : public control::Descriptor::Server {
 public:
  explicit PassedDescriptor(kj::AutoCloseFd fd) : fd(kj::mv(fd)) {}
  kj::Maybe<int> getFd() override { return fd.get(); }

 private:
  kj::AutoCloseFd fd;
};

// A copy of `fd` with a life of its own. Throws kj::Exception.
kj::AutoCloseFd duplicate(int fd);

// What a message carried, ours to keep: the capability ends with the message. Rejects if it came without one.
kj::Promise<kj::AutoCloseFd> receiveDescriptor(control::Descriptor::Client descriptor);

}  // namespace vgpu
