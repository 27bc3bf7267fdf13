// An eventfd by which any thread wakes a thread in poll(2).
#pragma once

#include <kj/debug.h>
#include <kj/io.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>

namespace vgpu::client {

class EventDescriptor {
 public:
  EventDescriptor() : descriptor(make()) {}

  // Readable from raise() on, until lower().
  int fd() const { return descriptor; }
  // The write fails only if the eventfd's counter is full, and then it is readable anyway.
  void raise() {
    uint64_t one = 1;
    [[maybe_unused]] ssize_t written = write(descriptor, &one, sizeof one);
  }
  void lower() {
    uint64_t raised;
    [[maybe_unused]] ssize_t got = read(descriptor, &raised, sizeof raised);
  }

 private:
  static kj::AutoCloseFd make() {
    int fd;
    KJ_SYSCALL(fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    return kj::AutoCloseFd(fd);
  }

  const kj::AutoCloseFd descriptor;
};

}  // namespace vgpu::client
