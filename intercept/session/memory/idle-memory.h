// Gives leased device memory back that the program has not needed for a while. Mapping and unmapping a gigabyte takes the driver
// as long as a kernel that works on all of it, so what a program frees it keeps for a period, in which it may allocate it
// again; what has lain idle for a whole period is other programs'.
//
// One thread, started with the first memory that is too much to keep for good; it sleeps while there is none. It calls as the
// program's threads do, with no lock held; `mutex` is a leaf. It lives as long as the process, and stays in it over a suspend.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

namespace vgpu::client {

class Session;

class IdleMemory {
 public:
  // There is memory to look after. Any thread, with no lock held.
  void note(Session& session);

 private:
  void serve(Session& session);

  std::mutex mutex;
  std::condition_variable changed;
  bool noted = false;
  std::thread thread;
};

}  // namespace vgpu::client
