// Functions of the C library through which programs hand managed memory to the kernel (system-access.h), and the program's actions for
// the signal of a fault, which is ours, and its signal masks.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <type_traits>

#include "intercept/session/entry.h"
#include "intercept/session/managed/system-access.h"
#include "intercept/session/managed/touch-faults.h"

using namespace vgpu::client;

namespace {

// The C library's function of that name.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

constexpr ManagedAccess managed{bringForSystem, managedBytesFrom};

// `call(memory, bytes)`, in which the kernel accesses that.
template <typename Memory, typename Call>
ssize_t accessedBy(Memory* memory, size_t bytes, bool kernelWrites, Call&& call) {
  const iovec one{const_cast<void*>(static_cast<const void*>(memory)), bytes};
  auto callWith = [&](const iovec* vectors, int) { return call(static_cast<Memory*>(vectors->iov_base), vectors->iov_len); };
  return accessedBy(&one, 1, kernelWrites, managed, callWith);
}

// `call(message)`, which sends it, or receives it unless it is constant.
template <typename Message, typename Call>
ssize_t movedMessage(Message* message, Call&& call) {
  if (message == nullptr) return call(message);
  auto callWith = [&](const iovec* vectors, size_t count) {
    msghdr own = *message;
    own.msg_iov = const_cast<iovec*>(vectors);
    own.msg_iovlen = count;
    const ssize_t result = call(&own);
    if constexpr (!std::is_const_v<Message>) {
      message->msg_namelen = own.msg_namelen;
      message->msg_controllen = own.msg_controllen;
      message->msg_flags = own.msg_flags;
    }
    return result;
  };
  return accessedBy(message->msg_iov, message->msg_iovlen, !std::is_const_v<Message>, managed, callWith);
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

// ROW(name, parameters, whether the kernel writes to `bytes` at `memory`, arguments)
#define ROW(name, parameters, writes, arguments)                                                                       \
  VGPU_EXPORT ssize_t name parameters {                                                                                \
    static const auto system = next<ssize_t(*) parameters>(#name);                                                     \
    return accessedBy(memory, bytes, writes, [&](decltype(memory) memory, size_t bytes) { return system arguments; }); \
  }
ROW(read, (int file, void* memory, size_t bytes), true, (file, memory, bytes))
ROW(write, (int file, const void* memory, size_t bytes), false, (file, memory, bytes))
ROW(pread, (int file, void* memory, size_t bytes, off_t at), true, (file, memory, bytes, at))
ROW(pread64, (int file, void* memory, size_t bytes, off64_t at), true, (file, memory, bytes, at))
ROW(pwrite, (int file, const void* memory, size_t bytes, off_t at), false, (file, memory, bytes, at))
ROW(pwrite64, (int file, const void* memory, size_t bytes, off64_t at), false, (file, memory, bytes, at))
ROW(recv, (int socket, void* memory, size_t bytes, int flags), true, (socket, memory, bytes, flags))
ROW(send, (int socket, const void* memory, size_t bytes, int flags), false, (socket, memory, bytes, flags))
ROW(recvfrom, (int socket, void* memory, size_t bytes, int flags, struct sockaddr* from, socklen_t* fromBytes), true,
    (socket, memory, bytes, flags, from, fromBytes))
ROW(sendto, (int socket, const void* memory, size_t bytes, int flags, const struct sockaddr* to, socklen_t toBytes), false,
    (socket, memory, bytes, flags, to, toBytes))
// As a compiler calls them that checks the room at `memory` (-D_FORTIFY_SOURCE, the default of some distributions).
ROW(__read_chk, (int file, void* memory, size_t bytes, size_t room), true, (file, memory, bytes, room))
ROW(__pread_chk, (int file, void* memory, size_t bytes, off_t at, size_t room), true, (file, memory, bytes, at, room))
ROW(__pread64_chk, (int file, void* memory, size_t bytes, off64_t at, size_t room), true, (file, memory, bytes, at, room))
ROW(__recv_chk, (int socket, void* memory, size_t bytes, size_t room, int flags), true, (socket, memory, bytes, room, flags))
ROW(__recvfrom_chk, (int socket, void* memory, size_t bytes, size_t room, int flags, struct sockaddr* from, socklen_t* fromBytes),
    true, (socket, memory, bytes, room, flags, from, fromBytes))
#undef ROW

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

// ROW(name, parameters, whether the kernel writes to what the vectors name, arguments)
#define ROW(name, parameters, writes, arguments)                                          \
  VGPU_EXPORT ssize_t name parameters {                                                   \
    static const auto system = next<ssize_t(*) parameters>(#name);                        \
    auto call = [&](const struct iovec* vectors, int count) { return system arguments; }; \
    return accessedBy(vectors, count, writes, managed, call);                             \
  }
#define VECTORS int file, const struct iovec *vectors, int count
ROW(readv, (VECTORS), true, (file, vectors, count))
ROW(writev, (VECTORS), false, (file, vectors, count))
ROW(preadv, (VECTORS, off_t at), true, (file, vectors, count, at))
ROW(preadv64, (VECTORS, off64_t at), true, (file, vectors, count, at))
ROW(pwritev, (VECTORS, off_t at), false, (file, vectors, count, at))
ROW(pwritev64, (VECTORS, off64_t at), false, (file, vectors, count, at))
ROW(preadv2, (VECTORS, off_t at, int flags), true, (file, vectors, count, at, flags))
ROW(preadv64v2, (VECTORS, off64_t at, int flags), true, (file, vectors, count, at, flags))
ROW(pwritev2, (VECTORS, off_t at, int flags), false, (file, vectors, count, at, flags))
ROW(pwritev64v2, (VECTORS, off64_t at, int flags), false, (file, vectors, count, at, flags))
#undef VECTORS
#undef ROW
#define ROW(name, Message)                                                                  \
  VGPU_EXPORT ssize_t name(int socket, Message* message, int flags) {                       \
    static const auto system = next<ssize_t (*)(int, Message*, int)>(#name);                \
    return movedMessage(message, [&](Message* own) { return system(socket, own, flags); }); \
  }
ROW(recvmsg, struct msghdr)
ROW(sendmsg, const struct msghdr)
#undef ROW

}  // extern "C"
