// A thread that sleeps on the bells of a program's rings, and makes a descriptor readable when one is rung: so that the relay can
// sleep on the rings and on its connections at once.
#pragma once

#include <kj/io.h>

#include <atomic>
#include <thread>
#include <vector>

namespace vgpu::relay {

class BellThread {
 public:
  // What is rung from now on. The bells must outlive it.
  explicit BellThread(std::vector<std::atomic<uint32_t>*> bells);
  ~BellThread();
  BellThread(const BellThread&) = delete;
  BellThread& operator=(const BellThread&) = delete;

  int fd() const { return event; }
  // Makes the descriptor unreadable until the next bell.
  void clear();

 private:
  void run();

  std::vector<std::atomic<uint32_t>*> bells;
  std::vector<uint32_t> seen;  // the thread's
  kj::AutoCloseFd event;
  std::atomic<bool> ends{false};
  std::thread thread;
};

}  // namespace vgpu::relay
