// Work that continues in the background when its command is done, as the parent of a running program.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <functional>

namespace vgpu::ctl {

// The work calls this to continue alone: from then on it has no standard streams.
using Detach = std::function<void()>;

class BackgroundWork {
 public:
  // Runs `body` in a child, whose exit code is `body`'s result. Throws kj::Exception if no child can be made. This process must have only
  // one thread.
  explicit BackgroundWork(const std::function<int(const Detach&)>& body);
  // Waits until the child detaches, and returns 0; or until it has ended, and returns its exit code.
  int await();

 private:
  pid_t child = 0;
  kj::AutoCloseFd input;
};

// Replaces the open standard streams by /dev/null.
void closeStandardStreams();

}  // namespace vgpu::ctl
