// Touches of managed memory that the program may not access: SIGSEGV, whose handler runs on the touching thread and lets ManagedMemory
// bring the bytes; the thread then continues. Any other fault is handled as if we had no handler.
//
// SIGSEGV must not be blocked in a thread that touches managed memory, but natively it may be. So SIGSEGV is never really blocked: in the
// masks of threads and actions SIGSTKFLT, which nothing sends, stands for it, and is blocked if the program has blocked SIGSEGV. So the
// kernel and the C library preserve it, over siglongjmp() and for new threads too.
//
// Any thread. The state belongs to the process, as signal actions do.
#pragma once

#include <signal.h>

#include <atomic>
#include <cstdint>

namespace vgpu::client {

// Installs the handler, once. Called before the program gets any managed memory.
void serveTouches();

// Whether it is installed, so that there may be managed memory. Relaxed: a thread that knows of managed memory also sees this store.
extern std::atomic<bool> touchesAreServed;
inline bool servesTouches() { return touchesAreServed.load(std::memory_order_relaxed); }

// sigaction(2), before or after serveTouches(): for SIGSEGV it sets the program's action, to which we pass its faults.
int setAction(int number, const struct sigaction* action, struct sigaction* before);

// pthread_sigmask(3), with masks as the program sees them.
int setMask(int how, const sigset_t* mask, sigset_t* before);

// Makes [address, address + bytes) accessible, as far as it is managed memory; true if some of it is. For a system call, in which the
// kernel's access to an inaccessible page is an error instead of a fault.
bool bringForSystem(const void* memory, uint64_t bytes, bool writes);

// How many bytes from `memory` on are in the same piece of managed memory; 0 if none.
uint64_t managedBytesFrom(const void* memory);

}  // namespace vgpu::client
