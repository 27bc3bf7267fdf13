// Ends restored and still stopped processes if this process is killed before they are continued: only their root process would end with its
// parent.
//
// Owns a child process, which waits for the end of this one. This process must have only one thread.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <vector>

namespace vgpu::ctl {

class RestoreGuard {
 public:
  explicit RestoreGuard(const std::vector<pid_t>& processes);
  // The processes have been continued, or have been ended.
  ~RestoreGuard();
  RestoreGuard(const RestoreGuard&) = delete;
  RestoreGuard& operator=(const RestoreGuard&) = delete;

 private:
  kj::AutoCloseFd output;
  pid_t guard = 0;
};

}  // namespace vgpu::ctl
