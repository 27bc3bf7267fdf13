// Work that goes on in the background when what it was started for is done: as the parent of a program that runs.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <functional>

namespace vgpu::ctl {

// What the work calls when it goes on alone: from then on it has no standard streams.
using Detach = std::function<void()>;

class BackgroundWork {
 public:
  // Does `body` in a child, which ends with its exit code. Throws kj::Exception if there can be none. Not while this process has
  // threads.
  explicit BackgroundWork(const std::function<int(const Detach&)>& body);
  // Waits until it detaches, and returns 0; or until it has ended: its exit code.
  int await();

 private:
  pid_t child = 0;
  kj::AutoCloseFd input;
};

// As open as it was, and leads nowhere.
void closeStandardStreams();

}  // namespace vgpu::ctl
