// SIGINT, SIGTERM and SIGHUP during a long operation: they end it as an error does, so that what it has begun is removed.
//
// One object at a time in a process. A wait for a file or a pipe returns EINTR. A signal that was ignored stays ignored.
#pragma once

#include <signal.h>

namespace vgpu::ctl {

class Interruption {
 public:
  Interruption();
  ~Interruption();
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;

  // Throws kj::Exception if a signal has come.
  void check() const;

 private:
  struct sigaction before[3];
};

}  // namespace vgpu::ctl
