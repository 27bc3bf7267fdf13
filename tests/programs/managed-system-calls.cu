// System calls with arguments in managed memory that is on the device: buffers, file names, structures, vectors, messages; through the C
// library's functions and by number, alone and while another thread's launches keep taking the pages.
#include <dirent.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>

#include <cerrno>
#include <csignal>
#include <ctime>
#include <functional>
#include <thread>

#include "in-session.h"
#include "io-ring.h"
#include "managed.h"

__global__ void touch(int* data) { ++*data; }

namespace {

constexpr size_t poolBytes = 256 << 10;
char* pool = nullptr;  // managed
size_t used = 0;
int* counter = nullptr;  // managed

// Managed memory with these values, until the next check.
template <typename T>
T* managed(const T& value, size_t count = 1) {
  T* made = reinterpret_cast<T*>(pool + used);
  used += (count * sizeof(T) + 63) / 64 * 64;
  for (size_t i = 0; i < count; ++i) made[i] = value;
  return made;
}
char* managed(const std::string& text) { return std::strcpy(managed(char{}, text.size() + 1), text.c_str()); }

// Moves all pages to the device.
void give() {
  touch<<<1, 1>>>(counter);
  CHECK(cudaDeviceSynchronize());
}

// Calls the function with all its arguments on the device, and returns its result.
template <typename Function, typename... Arguments>
auto given(Function function, Arguments... arguments) {
  give();
  return function(arguments...);
}

std::string folder;

struct Ends {
  int read, write;
  ~Ends() {
    close(read);
    close(write);
  }
};
Ends pipeEnds() {
  int ends[2];
  CHECK(pipe(ends) == 0 ? cudaSuccess : cudaErrorUnknown);
  return {ends[0], ends[1]};
}
Ends socketEnds(int type) {
  int ends[2];
  CHECK(socketpair(AF_UNIX, type, 0, ends) == 0 ? cudaSuccess : cudaErrorUnknown);
  return {ends[0], ends[1]};
}

bool isRandom(const char* bytes) {
  int zeros = 0;
  for (int i = 0; i < 64; ++i) zeros += bytes[i] == 0;
  return zeros < 32;
}

bool movesBytes() {
  const Ends ends = pipeEnds();
  char *from = managed(std::string("bytes")), *to = managed(char{}, 64);
  iovec* out = managed(iovec{from, 5});
  iovec* in = managed(iovec{to, 64});
  bool ok = EXPECT(given(syscall, SYS_write, ends.write, from, 5ul) == 5) & EXPECT(given(syscall, SYS_read, ends.read, to, 64ul) == 5) &
            EXPECT(std::strcmp(to, "bytes") == 0);
  from[0] = 'B';
  ok &= EXPECT(given(writev, ends.write, out, 1) == 5) & EXPECT(given(readv, ends.read, in, 1) == 5) & EXPECT(to[0] == 'B');
  from[0] = 'b';
  ok &= EXPECT(given(syscall, SYS_writev, ends.write, out, 1) == 5) & EXPECT(given(syscall, SYS_readv, ends.read, in, 1) == 5) &
        EXPECT(to[0] == 'b');
  char remote[] = "elsewhere";  // the kernel refuses an address in the other process's managed memory
  iovec* far = managed(iovec{remote, sizeof remote});
  ok &= EXPECT(given(process_vm_readv, getpid(), in, 1ul, far, 1ul, 0ul) == sizeof remote) & EXPECT(std::strcmp(to, remote) == 0);
  char* noise = managed(char{}, 64);
  ok &= EXPECT(given(getrandom, noise, 64ul, 0u) == 64) & EXPECT(isRandom(noise));
  std::memset(noise, 0, 64);
  ok &= EXPECT(given(getentropy, noise, 64ul) == 0) & EXPECT(isRandom(noise));
  std::memset(noise, 0, 64);
  ok &= EXPECT(given(syscall, SYS_getrandom, noise, 64ul, 0u) == 64) & EXPECT(isRandom(noise));
  return ok;
}

bool movesBetweenFiles() {
  std::FILE *from = std::tmpfile(), *to = std::tmpfile();
  std::fputs("0123456789", from);
  std::fflush(from);
  auto *at = managed(off_t{4}), *target = managed(off_t{100});
  const Ends ends = pipeEnds();
  char back[10] = {};
  bool ok = EXPECT(given(sendfile, fileno(to), fileno(from), at, 3ul) == 3) & EXPECT(*at == 7);
  *at = 2;
  ok &= EXPECT(given(copy_file_range, fileno(from), at, fileno(to), target, 4ul, 0u) == 4) & EXPECT(*at == 6) & EXPECT(*target == 104);
  *at = 1;
  ok &= EXPECT(given(splice, fileno(from), at, ends.write, static_cast<off_t*>(nullptr), 3ul, 0u) == 3) & EXPECT(*at == 4);
  ok &= EXPECT(read(ends.read, back, 3) == 3) & EXPECT(std::strcmp(back, "123") == 0);
  ok &= EXPECT(pread(fileno(to), back, 3, 0) == 3) & EXPECT(std::strcmp(back, "456") == 0);
  std::fclose(from);
  std::fclose(to);
  return ok;
}

bool namesFiles() {
  char *name = managed(folder + "/file"), *other = managed(folder + "/other"), *below = managed(folder + "/below");
  char *relative = managed(std::string("file")), *mode = managed(std::string("r")), *link = managed(folder + "/link");
  char *path = managed(char{}, 4096), *base = managed(folder);
  auto* facts = managed<struct stat>({});
  auto* more = managed<struct statx>({});
  auto isFile = [&] { return EXPECT(S_ISREG(facts->st_mode)) & EXPECT(facts->st_size == 3); };
  int file = given(open, name, O_CREAT | O_RDWR, 0600);
  bool ok = EXPECT(file >= 0) & EXPECT(write(file, "abc", 3) == 3);
  const int parent = given(open, base, O_RDONLY | O_DIRECTORY, 0);
  ok &= EXPECT(given(fstat, file, facts) == 0) & isFile();
  close(file);
  for (auto status : {stat, lstat}) {
    *facts = {};
    ok &= EXPECT(given(status, name, facts) == 0) & isFile();
  }
  *facts = {};
  ok &= EXPECT(given(fstatat, parent, relative, facts, 0) == 0) & isFile();
  *facts = {};
  ok &= EXPECT(given(syscall, SYS_newfstatat, parent, relative, facts, 0) == 0) & isFile();
  ok &= EXPECT(given(statx, parent, relative, 0, unsigned{STATX_SIZE}, more) == 0) & EXPECT(more->stx_size == 3);
  auto* system = managed<struct statvfs>({});
  ok &= EXPECT(given(statvfs, name, system) == 0) & EXPECT(system->f_bsize != 0);
  file = given(openat, parent, relative, O_RDONLY, 0);
  ok &= EXPECT(file >= 0) & EXPECT(close(file) == 0);
  file = static_cast<int>(given(syscall, SYS_openat, parent, relative, O_RDONLY, 0));
  ok &= EXPECT(file >= 0) & EXPECT(close(file) == 0);
  std::FILE* stream = given(std::fopen, name, mode);
  ok &= EXPECT(stream != nullptr) && EXPECT(std::fclose(stream) == 0);
  ok &= EXPECT(given(access, name, R_OK) == 0) & EXPECT(given(access, other, R_OK) == -1) & EXPECT(errno == ENOENT);
  ok &= EXPECT(given(chmod, name, 0640) == 0) & EXPECT(given(truncate, name, 2) == 0) & EXPECT(given(::symlink, name, link) == 0);
  ok &= EXPECT(given(readlink, link, path, 4096ul) == static_cast<ssize_t>(std::strlen(name))) & EXPECT(std::strcmp(path, name) == 0);
  std::memset(path, 0, 4096);
  ok &= EXPECT(given(realpath, link, path) == path) & EXPECT(std::strstr(path, "/file") != nullptr);
  ok &= EXPECT(given(rename, name, other) == 0) & EXPECT(access(other, R_OK) == 0) & EXPECT(given(::link, other, name) == 0);
  ok &= EXPECT(given(unlink, other) == 0) & EXPECT(given(unlink, link) == 0) & EXPECT(given(mkdir, below, 0700) == 0);
  auto* times = managed(timespec{1000, 0}, 2);
  ok &= EXPECT(given(utimensat, AT_FDCWD, name, times, 0) == 0) & EXPECT(stat(name, facts) == 0) & EXPECT(facts->st_mtime == 1000);
  DIR* opened = given(opendir, below);
  ok &= EXPECT(opened != nullptr) && EXPECT(closedir(opened) == 0);
  char* entries = managed(char{}, 4096);
  const long listed = given(syscall, SYS_getdents64, parent, entries, 4096u);
  ok &= EXPECT(listed > 0) & EXPECT(reinterpret_cast<dirent64*>(entries)->d_reclen > 0);
  const int here = open(".", O_RDONLY);
  ok &= EXPECT(given(chdir, below) == 0) & EXPECT(given(::getcwd, path, 4096ul) == path) & EXPECT(std::strstr(path, "/below") != nullptr);
  ok &= EXPECT(given(syscall, SYS_getcwd, path, 4096ul) == static_cast<long>(std::strlen(path)) + 1) & EXPECT(fchdir(here) == 0);
  close(here);
  close(parent);
  int (*removes)(const char*) = std::remove;
  return ok & EXPECT(given(rmdir, below) == 0) & EXPECT(given(removes, name) == 0) & EXPECT(access(name, R_OK) == -1);
}

bool connects() {
  auto* address = managed(sockaddr_in{});
  auto *bytes = managed(socklen_t{sizeof(sockaddr_in)}), *value = managed(socklen_t{1});
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
  auto* general = reinterpret_cast<sockaddr*>(address);
  const socklen_t all = sizeof *address;
  bool ok = EXPECT(given(setsockopt, listener, SOL_SOCKET, SO_REUSEADDR, value, socklen_t{4}) == 0);
  *value = 0;
  ok &= EXPECT(given(getsockopt, listener, SOL_SOCKET, SO_REUSEADDR, value, bytes) == 0) & EXPECT(*value == 1) & EXPECT(*bytes == 4);
  *bytes = all;
  ok &= EXPECT(given(bind, listener, general, all) == 0) & EXPECT(listen(listener, 1) == 0);
  ok &= EXPECT(given(getsockname, listener, general, bytes) == 0) & EXPECT(address->sin_port != 0) & EXPECT(*bytes == all);
  ok &= EXPECT(given(connect, client, general, all) == 0);
  *address = {};
  const int server = given(accept, listener, general, bytes);
  ok &= EXPECT(server >= 0) & EXPECT(address->sin_port != 0) & EXPECT(*bytes == all);
  *address = {};
  ok &= EXPECT(given(getpeername, server, general, bytes) == 0) & EXPECT(address->sin_port != 0);
  for (int one : {listener, client, server}) close(one);
  return ok;
}

// With the sender's address, and with a file descriptor as control data.
bool movesMessages() {
  const Ends ends = socketEnds(SOCK_DGRAM);
  char *sent = managed(std::string("datagram")), *got = managed(char{}, 64), *control = managed(char{}, 256);
  auto* vectors = managed(iovec{sent, 8});
  auto* message = managed(msghdr{});
  message->msg_iov = vectors;
  message->msg_iovlen = 1;
  message->msg_control = control;
  message->msg_controllen = CMSG_SPACE(sizeof(int));
  cmsghdr* first = CMSG_FIRSTHDR(message);
  first->cmsg_level = SOL_SOCKET;
  first->cmsg_type = SCM_RIGHTS;
  first->cmsg_len = CMSG_LEN(sizeof(int));
  bool ok = true;
  auto exchange = [&](auto&& sends, auto&& receives) {
    *reinterpret_cast<int*>(CMSG_DATA(first)) = ends.write;
    *vectors = {sent, 8};
    ok &= EXPECT(given(sends) == 8);
    std::memset(CMSG_DATA(first), 0, sizeof(int));
    *vectors = {got, 64};
    ok &= EXPECT(given(receives) == 8) & EXPECT(std::memcmp(got, "datagram", 8) == 0);
    const int carried = *reinterpret_cast<int*>(CMSG_DATA(first));
    ok &= EXPECT(carried > 0) & EXPECT(close(carried) == 0);
    std::memset(got, 0, 64);
  };
  exchange([&] { return sendmsg(ends.write, message, 0); }, [&] { return recvmsg(ends.read, message, 0); });
  exchange([&] { return syscall(SYS_sendmsg, ends.write, message, 0); }, [&] { return syscall(SYS_recvmsg, ends.read, message, 0); });
  const int receiver = socket(AF_INET, SOCK_DGRAM, 0);
  auto *address = managed(sockaddr_in{}), *from = managed(sockaddr_in{});
  auto* bytes = managed(socklen_t{sizeof *address});
  address->sin_family = AF_INET;
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ok &= EXPECT(bind(receiver, reinterpret_cast<sockaddr*>(address), sizeof *address) == 0) &
        EXPECT(getsockname(receiver, reinterpret_cast<sockaddr*>(address), bytes) == 0);
  ok &= EXPECT(given(sendto, receiver, sent, 8ul, 0, reinterpret_cast<sockaddr*>(address), socklen_t{sizeof *address}) == 8);
  ok &= EXPECT(given(recvfrom, receiver, got, 64ul, 0, reinterpret_cast<sockaddr*>(from), bytes) == 8) &
        EXPECT(from->sin_port == address->sin_port) & EXPECT(std::memcmp(got, "datagram", 8) == 0);
  close(receiver);
  return ok;
}

bool makesAndWaits() {
  auto* pair = managed(int{}, 2);
  bool ok = true;
  auto isPair = [&] { return EXPECT(write(pair[1], "x", 1) == 1) & EXPECT(close(pair[0]) == 0) & EXPECT(close(pair[1]) == 0); };
  ok &= EXPECT(given(pipe, pair) == 0) && isPair();
  ok &= EXPECT(given(pipe2, pair, O_CLOEXEC) == 0) && isPair();
  ok &= EXPECT(given(socketpair, AF_UNIX, SOCK_STREAM, 0, pair) == 0) && isPair();
  const Ends ends = pipeEnds();
  ok &= EXPECT(write(ends.write, "x", 1) == 1);
  auto* polled = managed(pollfd{ends.read, POLLIN, 0}, 2);
  polled[1] = {ends.write, POLLIN, 0};
  ok &= EXPECT(given(poll, polled, 2ul, 0) == 1) & EXPECT(polled[0].revents == POLLIN);
  auto* soon = managed(timespec{0, 1000});
  polled[0].revents = 0;
  ok &= EXPECT(given(ppoll, polled, 2ul, soon, static_cast<sigset_t*>(nullptr)) == 1) & EXPECT(polled[0].revents == POLLIN);
  auto* set = managed(fd_set{});
  FD_SET(ends.read, set);
  auto* limit = managed(timeval{0, 1000});
  ok &= EXPECT(given(select, ends.read + 1, set, static_cast<fd_set*>(nullptr), static_cast<fd_set*>(nullptr), limit) == 1) &
        EXPECT(FD_ISSET(ends.read, set));
  const int events = epoll_create1(0);
  auto* event = managed(epoll_event{EPOLLIN, {}});
  event->data.fd = 77;
  ok &= EXPECT(given(epoll_ctl, events, EPOLL_CTL_ADD, ends.read, event) == 0);
  event->data.fd = 0;
  ok &= EXPECT(given(epoll_wait, events, event, 1, 1000) == 1) & EXPECT(event->data.fd == 77);
  close(events);
  auto* waiting = managed(int{});
  ok &= EXPECT(given(ioctl, ends.read, static_cast<unsigned long>(FIONREAD), waiting) == 0) & EXPECT(*waiting == 1);
  const int counted = eventfd(5, 0);
  auto* count = managed(uint64_t{});
  ok &= EXPECT(given(read, counted, static_cast<void*>(count), 8ul) == 8) & EXPECT(*count == 5);  // executed only once
  close(counted);
  const pid_t child = fork();
  if (child == 0) _exit(7);
  auto* status = managed(int{});
  ok &= EXPECT(given(waitpid, child, status, 0) == child) & EXPECT(WIFEXITED(*status) && WEXITSTATUS(*status) == 7);
  return ok;
}

bool asksTheSystem() {
  auto* name = managed(utsname{});
  auto* usage = managed(rusage{});
  auto* limit = managed(rlimit{});
  auto* time = managed(timespec{});
  auto *soon = managed(timespec{0, 1000}), *left = managed(timespec{});
  auto* title = managed(char{}, 16);
  auto* lock = managed(flock{});
  auto* processors = managed(cpu_set_t{});
  auto* word = managed(int{3});
  bool ok = EXPECT(given(uname, name) == 0) & EXPECT(std::strcmp(name->sysname, "Linux") == 0);
  std::memset(name, 0, sizeof *name);
  ok &= EXPECT(given(syscall, SYS_uname, name) == 0) & EXPECT(std::strcmp(name->sysname, "Linux") == 0);
  ok &= EXPECT(given(getrusage, RUSAGE_SELF, usage) == 0) & EXPECT(usage->ru_maxrss > 0);
  ok &= EXPECT(given(getrlimit, RLIMIT_NOFILE, limit) == 0) & EXPECT(limit->rlim_max > 0);
  ok &= EXPECT(given(sched_getaffinity, 0, sizeof *processors, processors) == 0) & EXPECT(CPU_COUNT(processors) > 0);
  for (clockid_t clock : {CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID}) {
    *time = {};
    ok &= EXPECT(given(clock_gettime, clock, time) == 0) & EXPECT(time->tv_sec + time->tv_nsec > 0);
  }
  ok &= EXPECT(given(nanosleep, soon, left) == 0) & EXPECT(given(clock_nanosleep, CLOCK_MONOTONIC, 0, soon, left) == 0);
  ok &= EXPECT(given(syscall, SYS_prctl, 16, title) == 0) & EXPECT(title[0] != 0);  // PR_GET_NAME
  std::FILE* file = std::tmpfile();
  lock->l_type = F_WRLCK;
  ok &= EXPECT(given(fcntl, fileno(file), F_GETLK, lock) == 0) & EXPECT(lock->l_type == F_UNLCK);
  std::string large(100'000, 'x');
  char* text = managed(large);
  ok &= EXPECT(given(std::fputs, text, file) >= 0) & EXPECT(std::fflush(file) == 0) & EXPECT(std::ftell(file) == 100'000);
  std::fclose(file);
  if (!inSession) return ok;  // natively the driver's pages do not support futexes
  auto* limited = managed(timespec{0, 1000});
  give();
  ok &= EXPECT(syscall(SYS_futex, word, FUTEX_WAIT, 2, limited) == -1) & EXPECT(errno == EAGAIN);
  give();
  ok &= EXPECT(syscall(SYS_futex, word, FUTEX_WAIT, 3, limited) == -1) & EXPECT(errno == ETIMEDOUT);
  std::thread waker([&] {
    while (syscall(SYS_futex, word, FUTEX_WAKE, 1) != 1) std::this_thread::yield();
  });
  ok &= EXPECT(syscall(SYS_futex, word, FUTEX_WAIT, 3, nullptr) == 0);
  waker.join();
  return ok;
}

bool isRefusedAsElsewhere() {
  char* name = managed(std::string(folder) + "/missing");
  auto* facts = managed<struct stat>({});
  errno = 0;
  bool ok = EXPECT(given(stat, name, facts) == -1) & EXPECT(errno == ENOENT);
  ok &= EXPECT(given(stat, name, static_cast<struct stat*>(nullptr)) == -1) & EXPECT(errno == ENOENT);
  const char* volatile root = "/";
  ok &= EXPECT(syscall(SYS_stat, root, 1ul) == -1) & EXPECT(errno == EFAULT);
  return ok & EXPECT(syscall(-5) == -1) & EXPECT(errno == ENOSYS);
}

// Not a function of the C library: the session cannot intercept it.
long bare(long number, const void* first, const void* second, long third) {
  long result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(first), "S"(second), "d"(third) : "rcx", "r11", "memory");
  return result;
}
long bare(long number, int first, const void* second, long third) {
  return bare(number, reinterpret_cast<const void*>(static_cast<long>(first)), second, third);
}

// If the kernel's own accesses of managed memory are served: on a GPU, and in a session that uses userfaultfd.
bool isCalledBarely() {
  char* noise = managed(char{}, 64);
  const long got = given([&] { return bare(SYS_getrandom, noise, reinterpret_cast<const void*>(64), 0); });
  const char* wish = std::getenv("VGPU_MANAGED_FAULTS");
  const int watch = static_cast<int>(syscall(SYS_userfaultfd, O_CLOEXEC));
  const bool mayBeRefused = wish == nullptr || std::strcmp(wish, "userfaultfd") != 0 || watch < 0;
  if (watch >= 0) close(watch);
  if (got != 64) return EXPECT(got == -EFAULT) & EXPECT(mayBeRefused);
  const Ends ends = pipeEnds();
  constexpr long bytes = 50'000;
  char *from = managed(char{5}, bytes), *to = managed(char{}, bytes);
  bool ok = EXPECT(isRandom(noise));
  give();
  ok &= EXPECT(bare(SYS_write, ends.write, from, bytes) == bytes);
  give();
  ok &= EXPECT(bare(SYS_read, ends.read, to, bytes) == bytes) & EXPECT(std::memcmp(from, to, bytes) == 0);
  auto* facts = managed<struct stat>({});
  char* name = managed(folder);
  give();
  ok &= EXPECT(bare(SYS_stat, name, facts, 0) == 0) & EXPECT(S_ISDIR(facts->st_mode));
  IoRing ring;
  for (uint8_t thread : {0, int{IOSQE_ASYNC}}) {
    if (!ring.isThere()) break;
    std::memset(to, 0, bytes);
    ok &= EXPECT(given([&] { return ring.run(IORING_OP_WRITE, ends.write, from, bytes, thread); }) == bytes) &
          EXPECT(given([&] { return ring.run(IORING_OP_READ, ends.read, to, bytes, thread); }) == bytes) &
          EXPECT(std::memcmp(from, to, bytes) == 0);
  }
  return ok;
}

bool isCalled() {
  bool ok = true;
  for (auto* part : {movesBytes, movesBetweenFiles, namesFiles, connects, movesMessages, makesAndWaits, asksTheSystem, isRefusedAsElsewhere, isCalledBarely}) {
    used = 0;
    ok &= part();
  }
  return ok;
}

bool isCalledBesideLaunches() {
  int* theirs = nullptr;
  CHECK(cudaMallocManaged(&theirs, sizeof(int)));
  std::atomic<bool> ends{false};
  std::thread launches([&] {
    while (!ends) {
      touch<<<1, 1>>>(theirs);
      CHECK(cudaStreamSynchronize(nullptr));
    }
  });
  bool ok = true;
  for (int round = 0; round < 3; ++round) ok &= isCalled();
  ends = true;
  launches.join();
  CHECK(cudaFree(theirs));
  return ok;
}

}  // namespace

int main() {
  if (!isConcurrent()) return notHere;
  char name[] = "/tmp/managed-system-calls-XXXXXX";
  folder = mkdtemp(name);
  CHECK(cudaMallocManaged(&pool, poolBytes));
  CHECK(cudaMallocManaged(&counter, sizeof(int)));
  bool ok = isCalled();
  pausePoint();
  ok &= isCalled();
  ok &= isCalledBesideLaunches();
  ok &= EXPECT(*counter > 0) & EXPECT(rmdir(name) == 0);
  CHECK(cudaFree(pool));
  CHECK(cudaFree(counter));
  return verdict("managed-system-calls", ok);
}
