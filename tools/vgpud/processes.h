// Other processes, watched by pidfd: workers, which are our children and are reaped here, and programs, which are not our children.
#pragma once

#include <kj/async-io.h>
#include <kj/async-unix.h>

#include <string>

namespace vgpu::daemon {

class Processes final : private kj::TaskSet::ErrorHandler {
 public:
  explicit Processes(kj::UnixEventPort& port) : port(port), tasks(*this) {}

  struct Child {
    kj::AutoCloseFd handle;          // a pidfd
    kj::Promise<std::string> ended;  // resolves to how it ended
  };
  // Takes over a child that the caller has started: it is reaped when it ends, whether or not a caller waits for that. If it cannot be
  // watched, kills and reaps it, and throws kj::Exception (Linux has pidfds since 5.3).
  Child adopt(pid_t child);

  // Resolves when the process has ended, at once if it has already. Never resolves if we cannot see the process (another pid namespace):
  // then only its connection shows whether it runs.
  kj::Promise<void> ended(pid_t pid);
  // The same for a pidfd.
  kj::Promise<void> ended(kj::AutoCloseFd handle);

  // Resolves when no child is left.
  kj::Promise<void> allReaped() { return tasks.onEmpty(); }

 private:
  kj::Promise<std::string> reap(pid_t child);
  void taskFailed(kj::Exception&& exception) override;

  kj::UnixEventPort& port;
  kj::TaskSet tasks;
};

}  // namespace vgpu::daemon
