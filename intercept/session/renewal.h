// How a thread of the program asks for a new worker: the control thread speaks to the daemon, the thread waits.
//
// Owns the descriptor that wakes the control thread. Lock order: `alone` before `mutex`, which is a leaf. Nothing of it
// survives a suspend but the wish itself: the resume that brings a new worker fulfils it.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>

#include "intercept/session/event-descriptor.h"

namespace vgpu::client {

class Renewal {
 public:
  // Any thread, one at a time. Empty when the new worker is there; else why it is not.
  std::string await();

  // The rest is the control thread's.
  // Readable when somebody has begun to wait; until isWanted() is asked.
  int fd() const { return wish.fd(); }
  // Whether somebody waits for whom the daemon has not been asked.
  bool isWanted();
  void setAsked() { asked = true; }
  // Ends the wait, where there is one. `why` as await() gives it.
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
