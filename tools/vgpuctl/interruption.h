// SIGINT, SIGTERM and SIGHUP during a long operation: they end it like an error, so that what it has begun is removed.
//
// One object at a time per process. A blocking wait for a file or a pipe returns EINTR. A signal that was ignored stays ignored.
#pragma once

#include <signal.h>

namespace vgpu::ctl {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Throws kj::Exception if a signal has arrived.
  void check() const;

 private:
  struct sigaction before[3];
};

}  // namespace vgpu::ctl
