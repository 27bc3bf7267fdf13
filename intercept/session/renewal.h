// A request of a program's thread for a new worker: the control thread exchanges the messages with the daemon, the thread waits.
//
// Owns the descriptor that wakes the control thread. Lock order: `alone` before `mutex`, which is a leaf. Only the request itself
// survives a suspend: the resume, which brings a new worker, completes it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "intercept/session/event-descriptor.h"

namespace vgpu::client {

class Renewal {
 public:
  // Any thread, one at a time. Empty when the session has its new worker; else the reason why not.
  std::string await();

  // The rest is the control thread's. Readable from when a thread begins to wait until isWanted() is called.
  int fd() const { return wish.fd(); }
  // Whether a thread waits for which the daemon has not been asked yet.
  bool isWanted();
  void setAsked() { asked = true; }
  // Ends the wait, if there is one. `why` as await() gives it.
  void finish(const std::string& why);

 private:
  EventDescriptor wish;
  std::mutex alone, mutex;
  std::condition_variable changed;
  bool wanted = false;
  std::string failure;
  bool asked = false;  // control thread only
};

}  // namespace vgpu::client
