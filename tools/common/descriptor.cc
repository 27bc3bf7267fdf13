#include "tools/common/descriptor.h"

#include <fcntl.h>
#include <kj/debug.h>

#include "vgpu/base/fail.h"

namespace vgpu {

kj::AutoCloseFd duplicate(int fd) {
  int own;
  KJ_SYSCALL(own = fcntl(fd, F_DUPFD_CLOEXEC, 3));
  return kj::AutoCloseFd(own);
}

kj::Promise<kj::AutoCloseFd> receiveDescriptor(control::Descriptor::Client descriptor) {
  auto fd = descriptor.getFd();
  return fd
      .then([](kj::Maybe<int> passed) {
        KJ_IF_MAYBE (number, passed) {
          return duplicate(*number);
        }
        fail("a message came without the file descriptor that belongs to it");
      })
      .attach(kj::mv(descriptor));
}

}  // namespace vgpu
