// Functions of the C library through which programs hand managed memory to the kernel. The kernel's access of a page that the
// program may not access is an error (EFAULT) and no fault that anybody could serve, so the pages are brought first; again, if
// another thread has given them to the device meanwhile. And the program's actions for the signal of a fault, which is ours.
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
  constexpr int mostTries = 100;  // each time another thread has given all pages to the device between bringing and the call
  for (int tries = 0;; ++tries) {
    const int before = errno;
    bool isManaged = bring();
    errno = before;
    ssize_t result = call();
    if (result != -1 || errno != EFAULT || !isManaged || tries == mostTries) return result;
  }
}

template <typename Call>
ssize_t withVectors(const struct iovec* vectors, int count, bool writes, Call&& call) {
  auto bring = [&] {
    bool isManaged = false;
    for (int i = 0; i < count && vectors != nullptr; ++i)
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
// As a compiler calls them that checks the room at `memory` (-D_FORTIFY_SOURCE, the default of some distributions).
ROW(__read_chk, (int file, void* memory, size_t bytes, size_t room), true, (file, memory, bytes, room))
ROW(__pread_chk, (int file, void* memory, size_t bytes, off_t at, size_t room), true, (file, memory, bytes, at, room))
ROW(__pread64_chk, (int file, void* memory, size_t bytes, off64_t at, size_t room), true, (file, memory, bytes, at, room))
ROW(__recv_chk, (int socket, void* memory, size_t bytes, size_t room, int flags), true, (socket, memory, bytes, room, flags))
#undef ROW

// The C library moves large pieces by a system call of its own.
VGPU_EXPORT size_t fread(void* memory, size_t size, size_t count, FILE* file) {
  static const auto system = next<size_t (*)(void*, size_t, size_t, FILE*)>("fread");
  bringForSystem(memory, size * count, true);
  return system(memory, size, count, file);
}
VGPU_EXPORT size_t __fread_chk(void* memory, size_t room, size_t size, size_t count, FILE* file) {
  static const auto system = next<size_t (*)(void*, size_t, size_t, size_t, FILE*)>("__fread_chk");
  bringForSystem(memory, size * count, true);
  return system(memory, room, size, count, file);
}
VGPU_EXPORT size_t fwrite(const void* memory, size_t size, size_t count, FILE* file) {
  static const auto system = next<size_t (*)(const void*, size_t, size_t, FILE*)>("fwrite");
  bringForSystem(memory, size * count, false);
  return system(memory, size, count, file);
}

VGPU_EXPORT ssize_t readv(int file, const struct iovec* vectors, int count) {
  static const auto system = next<ssize_t (*)(int, const struct iovec*, int)>("readv");
  return withVectors(vectors, count, true, [&] { return system(file, vectors, count); });
}
VGPU_EXPORT ssize_t writev(int file, const struct iovec* vectors, int count) {
  static const auto system = next<ssize_t (*)(int, const struct iovec*, int)>("writev");
  return withVectors(vectors, count, false, [&] { return system(file, vectors, count); });
}

}  // extern "C"
