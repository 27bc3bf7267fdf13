// What prevents a process from being saved, and what a machine lacks to restore it. The process is the test itself, or its child.
#include "checkpoint/process/survey.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <linux/aio_abi.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "../objects/frames.h"

using namespace vgpu;
using namespace vgpu::process;
using vgpu::snapshot::ProcessPart;

namespace {

// Thread sanitizer's runtime maps a file that it has removed, an obstacle at which describe() stops.
#ifdef __SANITIZE_THREAD__
constexpr bool mapsRemovedFile = true;
#else
constexpr bool mapsRemovedFile = false;
#endif

bool says(const std::vector<std::string>& obstacles, const std::string& text) {
  return std::any_of(obstacles.begin(), obstacles.end(), [&](auto& one) { return one.find(text) != one.npos; });
}

template <typename Act>
std::string refusal(Act act) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions(act)) return exception->getDescription().cStr();
  return "";
}

// A TCP socket on this host: connected to `listener`, or without one listening with a backlog of one.
int tcpSocket(int listener = -1) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  auto* any = static_cast<sockaddr*>(static_cast<void*>(&address));
  int one = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
  REQUIRE(one >= 0);
  if (listener < 0) {
    REQUIRE(bind(one, any, length) == 0);
    REQUIRE(listen(one, 0) == 0);
  } else {
    REQUIRE(getsockname(listener, any, &length) == 0);
    REQUIRE((connect(one, any, length) == 0 || errno == EINPROGRESS));
  }
  return one;
}

// A child that runs `first` and then waits to be ended.
struct Child {
  pid_t pid = fork();
  explicit Child(void (*first)() = [] {}) {
    if (pid == 0) {
      first();
      pause();
      _exit(0);
    }
  }
  ~Child() {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
};

}  // namespace

TEST_CASE("a pipe within a tree is no obstacle, half of one is, unless it is a standard stream or the other end is closed" *
          doctest::skip(mapsRemovedFile)) {
  CHECK(says(obstaclesOf(getpid()), "it is this vgpuctl"));
  static int ends[2];
  REQUIRE(pipe(ends) == 0);
  std::string reading = "its descriptor " + std::to_string(ends[0]) + " is an end of a pipe";
  const std::string name = std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(ends[0]));
  auto becomesRestorers = [&] {
    auto pipes = describe(getpid()).pipes;
    return std::ranges::count(pipes, vgpu::snapshot::ForeignPipe{STDIN_FILENO, name}) == 1;
  };
  CHECK_FALSE(says(obstaclesOf(getpid()), reading));
  {
    Child reader([] { close(ends[1]); });  // this process, which is not in the child's tree, can write
    bool isObstacle = false;
    for (int polls = 0; polls < 5000 && !isObstacle; ++polls, usleep(1000)) isObstacle = says(obstaclesOf(reader.pid), reading);
    CHECK(isObstacle);
  }
  {
    Child child;  // it has both ends, as this process does
    close(ends[1]);
    CHECK_FALSE(says(obstaclesOf(getpid()), reading));
    CHECK_FALSE(becomesRestorers());
    // For a tree of several processes the error says which.
    CHECK(says(obstaclesOf(getpid()), named(getpid()) + ": it is this vgpuctl"));
  }
  CHECK_FALSE(says(obstaclesOf(getpid()), reading));
  int before = dup(STDIN_FILENO);
  dup2(ends[0], STDIN_FILENO);
  CHECK_FALSE(says(obstaclesOf(getpid()), reading));
  CHECK(becomesRestorers());
  dup2(before, STDIN_FILENO);
  close(before);
  close(ends[0]);
}

TEST_CASE("a tree is a process with its descendants, and its root is what a vgpuctl has started" *
          doctest::skip(mapsRemovedFile)) {
  // If this process is the first of a namespace, it is also the parent of orphans from other cases.
  const size_t before = treeOf(getpid()).size(), living = describe(getpid()).processes.size();
  Child one, two;
  auto tree = treeOf(getpid());
  CHECK(tree.front() == getpid());
  CHECK(tree.size() == before + 2);
  for (auto& child : {one.pid, two.pid}) CHECK(std::ranges::count(tree, child) == 1);
  CHECK(treeOf(one.pid) == std::vector<pid_t>{one.pid});
  // The children run this process's executable, which takes itself for vgpuctl.
  CHECK(runsThisProgram(one.pid));
  CHECK(rootOf(one.pid) == one.pid);
  CHECK_FALSE(runsThisProgram(-1));
  Child other([] { execl("/bin/sleep", "sleep", "1000", nullptr); });
  while (runsThisProgram(other.pid)) usleep(1000);
  CHECK(treeOf(getpid()).size() == before + 3);
  ProcessPart part = describe(getpid());
  CHECK(part.processes.size() == living + 3);
  CHECK(part.processes[0].pid == getpid());
  kill(two.pid, SIGSTOP);
  siginfo_t stopped;
  REQUIRE(waitid(P_PID, static_cast<id_t>(two.pid), &stopped, WSTOPPED) == 0);
  CHECK(stoppedIn(getpid()) == std::vector<int>{two.pid});
  kill(one.pid, SIGKILL);
  siginfo_t ended;
  REQUIRE(waitid(P_PID, static_cast<id_t>(one.pid), &ended, WEXITED | WNOWAIT) == 0);
  CHECK(hasEnded(one.pid));
  CHECK(describe(getpid()).processes.size() == living + 2);  // its id is still in use
  CHECK(std::ranges::count(describe(getpid()).threads, one.pid) == 1);
}

TEST_CASE("a vgpuctl is recognised after its file was replaced") {
  static test::ScratchDirectory scratch;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe");
  static const std::string former = scratch.path / self.filename();
  std::filesystem::copy_file("/bin/sh", former);
  Child parent([] { execl(former.c_str(), former.c_str(), "-c", "sleep 1000 & wait", nullptr); });
  while (treeOf(parent.pid).size() < 2) usleep(1000);
  const pid_t program = treeOf(parent.pid)[1];
  std::filesystem::remove(former);
  CHECK(rootOf(program) == program);
  kill(program, SIGKILL);
}

TEST_CASE("a descriptor of a kind that CRIU does not save is an obstacle, others are not") {
  int counter = eventfd(0, 0), nothing = open("/dev/null", O_RDWR), memory = open("/dev/mem", O_RDONLY);
  auto obstacles = obstaclesOf(getpid());
  for (int fine : {counter, nothing}) CHECK_FALSE(says(obstacles, "its descriptor " + std::to_string(fine) + " is"));
  if (memory >= 0) CHECK(says(obstacles, "its descriptor " + std::to_string(memory) + " is /dev/mem"));
  for (int file : {counter, nothing, memory}) close(file);
}

TEST_CASE("a file that was opened outside of the process's mount namespace is an obstacle") {
  int file = open("/dev/null", O_RDONLY);
  Child inside([] {
    if (unshare(CLONE_NEWNS) != 0) _exit(0);
  });
  const std::string expected = "its descriptor " + std::to_string(file) + ", /dev/null, is from another mount namespace";
  CHECK_FALSE(says(obstaclesOf(getpid()), named(getpid()) + ": " + expected));
  auto isIn = [&] { return says(obstaclesOf(inside.pid), expected); };
  auto hasEnded = [&] { return factsOf(inside.pid).state == 'Z'; };
  while (!hasEnded() && !isIn()) usleep(1000);
  if (hasEnded()) MESSAGE("no mount namespace can be made here");
  close(file);
}

TEST_CASE(
    "a TCP socket with a peer is an obstacle in each of its states, and a listening one if a connection waits to be accepted") {
  auto isObstacle = [](int file) { return says(obstaclesOf(getpid()), "its descriptor " + std::to_string(file) + " is a TCP"); };
  auto hasCallers = [](int file) {
    return says(obstaclesOf(getpid()), "its descriptor " + std::to_string(file) + " listens, and has");
  };
  int listener = tcpSocket(), near = tcpSocket(listener), far = accept(listener, nullptr, nullptr);
  REQUIRE(far >= 0);
  CHECK_FALSE(isObstacle(listener));
  CHECK(isObstacle(near));
  CHECK(isObstacle(far));
  shutdown(near, SHUT_WR);  // FIN_WAIT2 and CLOSE_WAIT
  CHECK(isObstacle(near));
  CHECK(isObstacle(far));
  CHECK_FALSE(hasCallers(listener));
  int caller = tcpSocket(listener), waiting = tcpSocket(listener);  // SYN_SENT: the listener's backlog is one
  CHECK(isObstacle(waiting));
  CHECK(hasCallers(listener));
  close(waiting);
  int accepted = accept(listener, nullptr, nullptr);
  CHECK_FALSE(hasCallers(listener));
  for (int file : {near, far, caller, accepted}) close(file);
  CHECK(says(obstaclesOf(getpid(), false),
             "its descriptor " + std::to_string(listener) + " is a TCP socket, which CRIU before 4.2.1"));
  close(listener);
}

TEST_CASE("memory that the kernel shows as a removed file is no obstacle" * doctest::skip(mapsRemovedFile)) {
  aio_context_t ring = 0;
  REQUIRE(syscall(SYS_io_setup, 8, &ring) == 0);
  const size_t bytes = 2 << 20;
  void* huge = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (huge == MAP_FAILED) MESSAGE("this machine has no huge pages");
  CHECK_FALSE(says(obstaclesOf(getpid()), "removed or replaced"));
  ProcessPart part = describe(getpid());
  CHECK(std::ranges::none_of(part.mapped, [](auto& one) { return one.path.ends_with(" (deleted)"); }));
  if (huge != MAP_FAILED) munmap(huge, bytes);
  syscall(SYS_io_destroy, ring);
}

#ifndef __SANITIZE_THREAD__  // whose runtime maps a removed file
TEST_CASE("a mapped file is described, and one that has been removed is an obstacle") {
  test::ScratchDirectory scratch;
  std::string path = scratch.path + "/mapped";
  std::ofstream(path) << std::string(4096, 'm');
  int file = open(path.c_str(), O_RDWR);
  void* mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE, file, 0);
  REQUIRE(mapped != MAP_FAILED);
  ProcessPart part = describe(getpid());
  CHECK(part.pid == getpid());
  CHECK(std::count(part.threads.begin(), part.threads.end(), getpid()) == 1);
  CHECK(std::any_of(part.mapped.begin(), part.mapped.end(), [&](auto& one) { return one.path == path && one.bytes == 4096; }));
  CHECK_FALSE(says(obstaclesOf(getpid()), path));
  requireSameFiles(part);
  std::ofstream(path) << std::string(4096, 'n');
  CHECK(refusal([&] { requireSameFiles(part); }).find(path + ", and the file here is a different one: 4096 bytes, xxh3") !=
        std::string::npos);
  // Another process may write to a file that is mapped shared, so its contents may differ, even though this process only reads it.
  void* shared = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, file, 0);
  REQUIRE(shared != MAP_FAILED);
  part = describe(getpid());
  std::ofstream(path) << std::string(4096, 'o');
  requireSameFiles(part);
  munmap(shared, 4096);
  unlink(path.c_str());
  CHECK(says(obstaclesOf(getpid()), "since been removed or replaced: " + path));
  CHECK(refusal([&] { requireSameFiles(part); }).find(path + ", which is not on this machine") != std::string::npos);
  munmap(mapped, 4096);
  close(file);
}
#endif

TEST_CASE("an id that a process or a thread has is not free") {
  ProcessPart part;
  {
    Child child;
    part.pid = child.pid;
    part.threads = {child.pid};
    CHECK(refusal([&] {
            requireFreeIds(part);
          }).find("process id " + std::to_string(child.pid) + " of the saved process is in use") != std::string::npos);
  }
  requireFreeIds(part);
}

TEST_CASE("if several ids are in use the process id is reported, even if thread ids are smaller because ids wrapped around") {
  Child thread, process;
  ProcessPart part;
  part.pid = process.pid;
  part.threads = {thread.pid, process.pid};
  CHECK(refusal([&] { requireFreeIds(part); }).starts_with("process id " + std::to_string(process.pid) + " of the saved process"));
}

TEST_CASE("facts of a process are read whatever characters its name has") {
  CHECK(factsOf(getpid()).parent == getppid());
  CHECK(factsOf(getpid()).session == getsid(0));
  CHECK(factsOf(-1).state == 0);
}
