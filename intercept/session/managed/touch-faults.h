// Touches of managed memory that the program may not access: a fault (SIGSEGV), whose handler, on the thread that touches, lets
// ManagedMemory bring the bytes; the thread then goes on. Any other fault is the program's, as if we had no handler.
//
// No signal may be blocked in a thread that touches managed memory, but natively it may. So SIGSEGV is never blocked, and in the
// masks of threads and actions SIGSTKFLT, which nothing sends, stands for it: blocked if the program has blocked SIGSEGV. So the
// kernel and the C library keep it, over siglongjmp() and for new threads too.
//
// Any thread. The state is the process's, as signal actions are.
#pragma once

#include <signal.h>
#include <stdio.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace vgpu::client {

// Installs the handler, once. Before any managed memory is given to the program.
void serveTouches();

// sigaction(2), after serveTouches() has been called or before: for SIGSEGV the program's action is what we pass its faults to.
int setAction(int number, const struct sigaction* action, struct sigaction* before);

// pthread_sigmask(3), with masks as the program knows them.
int setMask(int how, const sigset_t* mask, sigset_t* before);

// Makes [address, address + bytes) accessible, as far as it is managed memory. True if some of it is. For a system call, in which
// the kernel's access of a page that the program may not access is an error and no fault.
bool bringForSystem(const void* memory, uint64_t bytes, bool writes);

// How often a system call is made again because another thread has given all pages to the device between bringing and the call.
constexpr size_t mostTries = 100;

// The same for a file of the C library, which moves large pieces by system calls of its own: `move(done, left)` moves some of the
// `left` bytes behind the first `done`, and is called again for what it has left because of an access. How many bytes were moved.
template <typename Move>
size_t movedBy(FILE* file, const void* memory, size_t bytes, bool writes, Move&& move) {
  constexpr size_t piece = 64 << 10;  // after the first refusal: few bytes are moved before another thread takes them
  const bool hadFailed = ferror(file) != 0;
  const int before = errno;
  size_t done = 0, most = bytes;
  for (size_t tries = 0; done < bytes && tries <= mostTries;) {
    const size_t wanted = std::min(bytes - done, most);
    bringForSystem(static_cast<const char*>(memory) + done, wanted, writes);
    errno = 0;
    const size_t moved = move(done, wanted);
    const int error = std::exchange(errno, before);
    done += moved;
    tries = moved != 0 ? 0 : tries + 1;
    if (moved == wanted) continue;
    if (error != EFAULT || tries > mostTries) {
      if (error != 0) errno = error;
      break;
    }
    if (!hadFailed) clearerr(file);
    most = piece;
  }
  return done;
}

}  // namespace vgpu::client
