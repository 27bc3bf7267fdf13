// The functions of the C library through which programs pass managed memory to the kernel (system-call.h), and those by which the program
// changes signal masks and the action of the fault signal, which the session handles.
#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <type_traits>

#include "intercept/session/entry.h"
#include "intercept/session/managed/system-call.h"
#include "intercept/session/managed/touch-faults.h"
#include "vgpu/api/wire-value.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// The C library's function of that name.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

constexpr ManagedAccess managed{bringForSystem, managedBytesFrom};

// Our own libraries' calls never pass managed memory, and may hold locks that serving a page fault needs.
extern "C" __attribute__((visibility("hidden"))) const char __ehdr_start[], _end[];
bool isOurs(const void* caller) { return caller >= __ehdr_start && caller < _end; }

// Executes system call `number`, as the C library's syscall() does.
inline uint64_t systemCall(long number, const CallArguments& arguments) {
  const auto& [first, second, third, fourth, fifth, sixth] = arguments;
  register uint64_t r10 asm("r10") = fourth;
  register uint64_t r8 asm("r8") = fifth;
  register uint64_t r9 asm("r9") = sixth;
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(first), "S"(second), "d"(third), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  if (result >= 0 || result < -4095) return static_cast<uint64_t>(result);
  errno = static_cast<int>(-result);
  return UINT64_MAX;
}

#define CALL(name, ...) constexpr SystemCall row_##name{__VA_ARGS__};
#define FUNCTION CALL
#define NUMBER(name, ...) constexpr SystemCall number_##name{__VA_ARGS__};
#include "intercept/libc/system-calls.inc"

const SystemCall* findSystemCall(long number) {
  switch (number) {
#define CALL(name, ...) \
  case SYS_##name: return &row_##name;
#define FUNCTION(name, ...)
#define NUMBER(name, ...) \
  case SYS_##name: return &number_##name;
#include "intercept/libc/system-calls.inc"
    default: return nullptr;
  }
}

// A function of the C library with up to six arguments, each in a register, whatever its prototype. Looked up when this library is loaded,
// because its first caller may be a signal handler or a child of fork(); before that, at the first call.
class LibraryFunction {
 public:
  explicit constexpr LibraryFunction(const char* name) : name(name) {}
  void find() { found.store(next<Pointer>(name), std::memory_order_relaxed); }  // every thread stores the same value
  uint64_t operator()(const CallArguments& with) {
    if (found.load(std::memory_order_relaxed) == nullptr) find();
    return found.load(std::memory_order_relaxed)(with[0], with[1], with[2], with[3], with[4], with[5]);
  }

 private:
  using Pointer = uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t);
  const char* name;
  std::atomic<Pointer> found{nullptr};
};

#define CALL(name, ...) constinit LibraryFunction next_##name{#name};
#define FUNCTION CALL
#define NUMBER(...)
#include "intercept/libc/system-calls.inc"

__attribute__((constructor)) void findFunctions() {
#define CALL(name, ...) next_##name.find();
#define FUNCTION CALL
#define NUMBER(...)
#include "intercept/libc/system-calls.inc"
}

// A separate function, so that its callers need no stack frame while there is no managed memory.
__attribute__((noinline)) uint64_t called(const SystemCall& row, const CallArguments& arguments, LibraryFunction& function) {
  return calledWith(row, arguments, managed, function);
}
__attribute__((noinline)) uint64_t called(long number, const CallArguments& arguments) {
  auto call = [&](const CallArguments& given) { return systemCall(number, given); };
  if (number == SYS_sendmsg || number == SYS_recvmsg) {
    auto move = [&](msghdr* message) {
      CallArguments given = arguments;
      given[1] = toWire(message);
      return static_cast<ssize_t>(call(given));
    };
    return static_cast<uint64_t>(movedMessage(fromWire<msghdr*>(arguments[1]), number == SYS_recvmsg, managed, move));
  }
  const SystemCall* row = findSystemCall(number);
  return row == nullptr ? call(arguments) : calledWith(*row, arguments, managed, call);
}

}  // namespace

extern "C" {

VGPU_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* before) {
  return setAction(number, action, before);
}

VGPU_EXPORT sighandler_t signal(int number, sighandler_t handler) {
  struct sigaction action {}, before {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  return setAction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

VGPU_EXPORT int pthread_sigmask(int how, const sigset_t* mask, sigset_t* before) { return setMask(how, mask, before); }

VGPU_EXPORT int sigprocmask(int how, const sigset_t* mask, sigset_t* before) {
  const int error = setMask(how, mask, before);
  if (error != 0) errno = error;
  return error == 0 ? 0 : -1;
}

#define ARGUMENTS uint64_t first, uint64_t second, uint64_t third, uint64_t fourth, uint64_t fifth, uint64_t sixth
#define CALL(name, ...)                                                                                              \
  VGPU_EXPORT uint64_t entry_##name(ARGUMENTS) asm(#name);                                                           \
  uint64_t entry_##name(ARGUMENTS) {                                                                                 \
    const CallArguments arguments{first, second, third, fourth, fifth, sixth};                                       \
    if (!servesTouches() || isOurs(__builtin_return_address(0))) [[likely]] return next_##name(arguments);           \
    return called(row_##name, arguments, next_##name);                                                               \
  }
#define FUNCTION CALL
#define NUMBER(...)
#include "intercept/libc/system-calls.inc"

VGPU_EXPORT uint64_t entry_syscall(long number, ARGUMENTS) asm("syscall");
uint64_t entry_syscall(long number, ARGUMENTS) {
  const CallArguments arguments{first, second, third, fourth, fifth, sixth};
  if (!servesTouches() || isOurs(__builtin_return_address(0))) [[likely]] return systemCall(number, arguments);
  return called(number, arguments);
}
#undef ARGUMENTS

// __recvfrom_chk has seven arguments.
VGPU_EXPORT ssize_t __recvfrom_chk(int socket, void* memory, size_t bytes, size_t room, int flags, struct sockaddr* from,
                                   socklen_t* fromBytes) {
  static const auto system = next<ssize_t (*)(int, void*, size_t, size_t, int, struct sockaddr*, socklen_t*)>("__recvfrom_chk");
  if (bytes > room) return system(socket, memory, bytes, room, flags, from, fromBytes);  // the C library aborts the program
  return recvfrom(socket, memory, bytes, flags, from, fromBytes);
}

// ROW(name, parameters, whether the C library writes to the memory, arguments, arguments of a call for `bytes` at `memory`)
#define ROW(name, parameters, writes, arguments, bytewise)                              \
  VGPU_EXPORT size_t name parameters {                                                  \
    static const auto system = next<size_t(*) parameters>(#name);                       \
    if (size == 0) return system arguments;                                             \
    auto move = [&](decltype(memory) memory, size_t bytes) { return system bytewise; }; \
    return movedBy(file, memory, size * count, writes, managed, move) / size;           \
  }
ROW(fread, (void* memory, size_t size, size_t count, FILE* file), true, (memory, size, count, file), (memory, 1, bytes, file))
ROW(__fread_chk, (void* memory, size_t room, size_t size, size_t count, FILE* file), true, (memory, room, size, count, file),
    (memory, std::min(room, bytes), 1, bytes, file))
ROW(fwrite, (const void* memory, size_t size, size_t count, FILE* file), false, (memory, size, count, file),
    (memory, 1, bytes, file))
#undef ROW

// Text longer than the file's buffer reaches the kernel from the program's memory directly.
VGPU_EXPORT int fputs(const char* text, FILE* file) {
  static const auto system = next<int (*)(const char*, FILE*)>("fputs");
  if (!servesTouches() || managedBytesFrom(text) == 0) return system(text, file);
  const size_t bytes = strlen(text);
  return fwrite(text, 1, bytes, file) == bytes ? 1 : EOF;
}

VGPU_EXPORT int puts(const char* text) {
  static const auto system = next<int (*)(const char*)>("puts");
  if (!servesTouches() || managedBytesFrom(text) == 0) return system(text);
  flockfile(stdout);
  const int result = fputs(text, stdout) == EOF ? EOF : putchar_unlocked('\n');
  funlockfile(stdout);
  return result;
}

#define ROW(name, Message)                                                                              \
  VGPU_EXPORT ssize_t name(int socket, Message* message, int flags) {                                   \
    static const auto system = next<ssize_t (*)(int, Message*, int)>(#name);                            \
    if (!servesTouches() || isOurs(__builtin_return_address(0))) return system(socket, message, flags); \
    return movedMessage(const_cast<msghdr*>(message), !std::is_const_v<Message>, managed,               \
                        [&](msghdr* own) { return system(socket, own, flags); });                       \
  }
ROW(recvmsg, struct msghdr)
ROW(sendmsg, const struct msghdr)
#undef ROW

}  // extern "C"
