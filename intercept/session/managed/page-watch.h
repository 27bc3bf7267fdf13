// Touches of pages that the program may not access, by userfaultfd(2): the touching thread waits in its page fault, also inside a system
// call, until a thread of ours lets it continue. Used instead of page protection and its signal (touch-faults.h) if
// VGPU_MANAGED_FAULTS=userfaultfd requests it: it is slower (docs/managed-memory.md). Needs Linux 6.4, CAP_SYS_PTRACE or access to
// /dev/userfaultfd, and permission to lock memory: a swapped-out page would return without a fault that we see.
//
// A page that the program may not access has no page-table entry, although the file has the page; a page that it may only read is
// write-protected. A child of fork() inherits none of this. CRIU cannot save a process with a userfaultfd.
//
// Owns the descriptor and the threads that read it. One thread is always waiting for the next fault: serving the previous one may wait for
// work that waits for this one. Any thread; lives as long as the process.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "intercept/session/managed/host-access.h"

namespace vgpu::client {

class PageWatch {
 public:
  // Gives the thread `toucher` of this process read or write access to the page; false if impossible. Called by a thread of ours.
  using Serve = bool (*)(uint64_t address, bool writes, pid_t toucher);

  // Starts it, if it is requested and permitted. Once for the process.
  static void start(Serve serve);
  // The one that was started in this process; else nullptr.
  static PageWatch* find();

  // Watches a shared mapping that the program may read and write, and of which `always` is another mapping. False if the system refuses.
  bool add(uint64_t address, uint64_t bytes, void* always);
  // Changes the program's access to pages from `before` to `access`.
  bool allow(uint64_t address, uint64_t bytes, void* always, HostAccess before, HostAccess access);
  // Restores a page's access if its page-table entry may have been dropped.
  void allowAgain(uint64_t page, void* always, HostAccess access);

 private:
  PageWatch(kj::AutoCloseFd fd, Serve serve);
  void startReader();
  void readFaults();
  bool map(uint64_t address, uint64_t bytes, void* always, HostAccess access);
  bool makeWritable(uint64_t address, uint64_t bytes);

  const kj::AutoCloseFd fd;
  const Serve serve;
  const pid_t process;
  std::atomic<unsigned> waiting{0};  // threads that read the descriptor
};

}  // namespace vgpu::client
