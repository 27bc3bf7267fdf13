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

#include <atomic>
#include <cstdint>

namespace vgpu::client {

// Installs the handler, once. Before any managed memory is given to the program.
void serveTouches();

// Whether it is installed: there may be managed memory. Relaxed: who has been told of managed memory has been told of this before.
extern std::atomic<bool> touchesAreServed;
inline bool servesTouches() { return touchesAreServed.load(std::memory_order_relaxed); }

// sigaction(2), after serveTouches() has been called or before: for SIGSEGV the program's action is what we pass its faults to.
int setAction(int number, const struct sigaction* action, struct sigaction* before);

// pthread_sigmask(3), with masks as the program knows them.
int setMask(int how, const sigset_t* mask, sigset_t* before);

// Makes [address, address + bytes) accessible, as far as it is managed memory. True if some of it is. For a system call, in which
// the kernel's access of a page that the program may not access is an error and no fault.
bool bringForSystem(const void* memory, uint64_t bytes, bool writes);

// How many bytes from `memory` on are of the same piece of managed memory; 0 if none is.
uint64_t managedBytesFrom(const void* memory);

}  // namespace vgpu::client
