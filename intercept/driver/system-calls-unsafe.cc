// Functions of the C library through which programs hand managed memory to the kernel. The kernel's access of a page that the
// program may not access is an error (EFAULT) and no fault that anybody could serve, so the pages are brought first; again, if
// another thread has given them to the device meanwhile. And the program's actions for the signal of a fault, which is ours, and
// its signal masks.
#include <dlfcn.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

#include "intercept/session/entry.h"
#include "intercept/session/managed/touch-faults.h"

using namespace vgpu::client;

namespace {

// The C library's function of that name.
template <typename Function>
Function next(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

// `call`, which lets the kernel access memory that `bring` brings; that says whether it has brought any.
template <typename Bring, typename Call>
ssize_t broughtFor(Bring&& bring, Call&& call) {
  for (size_t tries = 0;; ++tries) {
    const int before = errno;
    bool isManaged = bring();
    errno = before;
    ssize_t result = call();
    if (result != -1 || errno != EFAULT || !isManaged || tries == mostTries) return result;
  }
}

template <typename Count, typename Call>
ssize_t withVectors(const struct iovec* vectors, Count count, bool writes, Call&& call) {
  auto bring = [&] {
    bool isManaged = false;
    for (Count i = 0; i < count && vectors != nullptr; ++i)
      isManaged |= bringForSystem(vectors[i].iov_base, vectors[i].iov_len, writes);
    return isManaged;
  };
  return broughtFor(bring, call);
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
#define ROW(name, parameters, writes, arguments)                                                                     \
  VGPU_EXPORT ssize_t name parameters {                                                                              \
    static const auto system = next<ssize_t(*) parameters>(#name);                                                   \
    return broughtFor([&] { return bringForSystem(memory, bytes, writes); }, [&] { return system arguments; });       \
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

// ROW(name, parameters, whether the C library writes to the memory, arguments, the type of the memory, arguments of a call for
// `left` bytes behind the first `done`)
#define ROW(name, parameters, writes, arguments, Byte, rest)                                                          \
  VGPU_EXPORT size_t name parameters {                                                                                \
    static const auto system = next<size_t(*) parameters>(#name);                                                     \
    if (!bringForSystem(memory, size * count, writes)) return system arguments;                                       \
    auto* bytes = static_cast<Byte*>(memory);                                                                         \
    return movedBy(file, memory, size * count, writes, [&](size_t done, size_t left) { return system rest; }) / size; \
  }
ROW(fread, (void* memory, size_t size, size_t count, FILE* file), true, (memory, size, count, file), char,
    (bytes + done, 1, left, file))
ROW(__fread_chk, (void* memory, size_t room, size_t size, size_t count, FILE* file), true, (memory, room, size, count, file),
    char, (bytes + done, room - done, 1, left, file))
ROW(fwrite, (const void* memory, size_t size, size_t count, FILE* file), false, (memory, size, count, file), const char,
    (bytes + done, 1, left, file))
#undef ROW

// ROW(name, parameters, whether the kernel writes to what the vectors name, arguments)
#define ROW(name, parameters, writes, arguments)                                  \
  VGPU_EXPORT ssize_t name parameters {                                           \
    static const auto system = next<ssize_t(*) parameters>(#name);                \
    return withVectors(vectors, count, writes, [&] { return system arguments; }); \
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
#define ROW(name, Message, writes)                                                                               \
  VGPU_EXPORT ssize_t name(int socket, Message* message, int flags) {                                            \
    static const auto system = next<ssize_t (*)(int, Message*, int)>(#name);                                     \
    const msghdr none{}, &given = message == nullptr ? none : *message;                                          \
    return withVectors(given.msg_iov, given.msg_iovlen, writes, [&] { return system(socket, message, flags); }); \
  }
ROW(recvmsg, struct msghdr, true)
ROW(sendmsg, const struct msghdr, false)
#undef ROW

}  // extern "C"
