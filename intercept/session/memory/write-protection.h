// Prevents all threads of this process from writing to some pages for a short time, even if they block all signals: a thread that writes
// waits inside its page fault (userfaultfd(2), write-protection mode). No signal, no handler.
//
// A system call that writes there waits too, if the process's userfaultfd may handle kernel accesses: it has CAP_SYS_PTRACE, or may open
// /dev/userfaultfd, or vm.unprivileged_userfaultfd is 1. Otherwise such a call fails with EFAULT meanwhile.
//
// Needs Linux 5.19 (write protection of shared memory); container runtimes may forbid it. Any thread; owns a file descriptor.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

class WriteProtection {
 public:
  // Prepares whole pages of private or shared memory; protects none yet. Nothing if the system refuses, or if the program itself has
  // registered these pages with userfaultfd.
  static std::optional<WriteProtection> over(uint64_t address, uint64_t bytes);

  // Calls `exchange` while nobody can write to [address, address + bytes), a part of the pages: it copies them and maps others over them.
  // Returns its result; if that is false, the pages are writable as before.
  template <typename Exchange>
  bool during(uint64_t address, uint64_t bytes, Exchange&& exchange) {
    bool done = protect(address, bytes) && exchange();
    if (done) wake(address, bytes);
    else unprotect(address, bytes);
    return done;
  }

 private:
  explicit WriteProtection(kj::AutoCloseFd fd) : fd(kj::mv(fd)) {}
  bool protect(uint64_t address, uint64_t bytes);
  void unprotect(uint64_t address, uint64_t bytes);
  void wake(uint64_t address, uint64_t bytes);

  kj::AutoCloseFd fd;  // closing it removes any remaining protection
};

}  // namespace vgpu::client
