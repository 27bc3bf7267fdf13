// Ends processes that were restored, and are stopped, if this process is killed before they go on: only their root ends with its
// parent by itself.
//
// Owns a child process, which waits for the end of this one. Not while this process has threads.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <vector>

namespace vgpu::ctl {

class RestoreGuard {
 public:
  explicit RestoreGuard(const std::vector<pid_t>& processes);
  // They go on, or have been ended.
  ~RestoreGuard();
  RestoreGuard(const RestoreGuard&) = delete;
  RestoreGuard& operator=(const RestoreGuard&) = delete;

 private:
  kj::AutoCloseFd output;
  pid_t guard = 0;
};

}  // namespace vgpu::ctl
