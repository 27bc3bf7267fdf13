// Touches of pages that the program may not access, by userfaultfd(2): whoever touches one waits in its page fault, the kernel in a
// system call too, until a thread of ours has let it go on. Instead of page protection and its signal (touch-faults.h), if
// VGPU_MANAGED_FAULTS=userfaultfd asks for it: it is slower (docs/managed-memory.md). Needs Linux 6.4, CAP_SYS_PTRACE or access to
// /dev/userfaultfd, and to lock memory: a page that is swapped out comes back without a fault that we see.
//
// What the program may not access has no entry in its page table, although the file has the page; what it may only read is protected
// from writing there. A child of fork() has none of this. A process with a userfaultfd cannot be saved by CRIU.
//
// Owns the descriptor and the threads that read it. One thread always waits for the next fault: the one before may wait for work
// that waits for this one. Any thread; lives as long as the process.
#pragma once

#include <kj/io.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "intercept/session/managed/host-access.h"

namespace vgpu::client {

class PageWatch {
 public:
  // Lets the thread `toucher` of this process read or write the page; false if it cannot. Called by a thread of ours.
  using Serve = bool (*)(uint64_t address, bool writes, pid_t toucher);

  // Begins to serve, if that is asked for and allowed. Once in a process.
  static void start(Serve serve);
  // What has been started in this process.
  static PageWatch* find();

  // From now on, of a shared mapping that the program may read and write, and of which `always` is another mapping. False if the
  // system refuses.
  bool add(uint64_t address, uint64_t bytes, void* always);
  // What the program may do with pages with which it could do `before` until now.
  bool allow(uint64_t address, uint64_t bytes, void* always, HostAccess before, HostAccess access);
  // The same of a page that may have lost its entry.
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
  std::atomic<unsigned> waiting{0};  // readers
};

}  // namespace vgpu::client
