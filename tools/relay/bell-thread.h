// A thread that sleeps on the bells of a program's rings, and makes a descriptor readable when one is rung, so that the relay can wait for
// the rings and its connections at the same time.
#pragma once

#include <kj/io.h>

#include <atomic>
#include <thread>
#include <vector>

namespace vgpu::relay {

class BellThread {
 public:
  // Watches for bells rung from now on. The bells must outlive it.
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
  std::vector<uint32_t> seen;  // used by the thread only
  kj::AutoCloseFd event;
  std::atomic<bool> ends{false};
  std::thread thread;
};

}  // namespace vgpu::relay
