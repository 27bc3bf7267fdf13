// Keeps every thread of this process from writing into some pages for a short time, whatever signals it blocks: a thread
// that writes waits inside its page fault (userfaultfd(2), write protection mode). No signal, no handler.
//
// A system call that writes there waits too, if userfaultfd may handle the kernel's accesses: it has CAP_SYS_PTRACE, or may open
// /dev/userfaultfd, or vm.unprivileged_userfaultfd is 1. Else such a call fails with EFAULT during that time.
//
// Needs Linux 5.19 (write protection of shared memory); container runtimes may refuse it. Any thread; owns a descriptor.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <optional>

namespace vgpu::client {

class WriteProtection {
 public:
  // Over whole pages of private or of shared memory, nothing of which is protected yet. Nothing if the system refuses it, or the
  // program has registered these pages with userfaultfd itself.
  static std::optional<WriteProtection> over(uint64_t address, uint64_t bytes);

  // Calls `exchange` while nobody can write into [address, address + bytes), a part of the pages: it copies them and maps others
  // over them. Returns its result; if that is false, the pages are writable as before.
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

  kj::AutoCloseFd fd;  // closing it ends what is left of the protection
};

}  // namespace vgpu::client
