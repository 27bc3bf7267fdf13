#pragma once

#include "intercept/session/thread.h"

namespace vgpu::client {

// Makes a context the thread's current one during its lifetime.
class InContext {
 public:
  InContext(Thread& thread, uint64_t context) : thread(thread) { thread.makeCurrent(context); }
  ~InContext() { thread.leaveCurrent(); }
  InContext(const InContext&) = delete;
  InContext& operator=(const InContext&) = delete;

 private:
  Thread& thread;
};

}  // namespace vgpu::client
