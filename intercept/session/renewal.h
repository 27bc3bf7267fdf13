// A request for a new worker by a thread of the program: the control thread exchanges the messages with the daemon, the thread waits.
//
// Owns the descriptor that wakes the control thread. Lock order: `alone`, then `mutex`, a leaf lock. Only the request itself survives a
// suspend: the resume, which brings a new worker, completes it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "intercept/session/event-descriptor.h"

namespace vgpu::client {

class Renewal {
 public:
  // Any thread, one at a time. Empty once the session has its new worker; else the reason why it has none.
  std::string await();

  // The rest is for the control thread. The descriptor is readable from the start of a thread's wait until isWanted().
  int fd() const { return wish.fd(); }
  // Whether a thread waits for whose request the daemon has not been asked yet.
  bool isWanted();
  void setAsked() { asked = true; }
  // Ends the wait, if there is one. `why`: the result of await().
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
