#include "vgpu/control/parked-program.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "vgpu/base/fail.h"

namespace vgpu {

namespace {

constexpr const char* fileName = "vgpu-parked";
constexpr const char* linkText = "/memfd:vgpu-parked (deleted)";  // as /proc/PID/fd shows it
constexpr uint64_t fileBytes = 4096;
constexpr off_t stateAt = 0, sessionAt = 8, textAt = 32;
constexpr int lookMilliseconds = 2;
constexpr size_t sessionBytes = textAt - sessionAt, textBytes = fileBytes - textAt;

enum class State : uint32_t { waits, called, attached, failed };

State stateOf(const MemoryFile& file) {
  uint32_t state = 0;
  KJ_SYSCALL(pread(file.fd(), &state, sizeof state, stateAt));
  return static_cast<State>(state);
}

void setState(const MemoryFile& file, State state) { KJ_SYSCALL(pwrite(file.fd(), &state, sizeof state, stateAt)); }

// With a terminating zero.
std::string textOf(const MemoryFile& file, off_t at, size_t bytes) {
  std::string text(bytes, '\0');
  ssize_t count;
  KJ_SYSCALL(count = pread(file.fd(), text.data(), bytes, at));
  text.resize(static_cast<size_t>(count));
  return text.substr(0, text.find('\0'));
}

void setText(const MemoryFile& file, off_t at, size_t bytes, std::string text) {
  text.resize(bytes);
  text.back() = '\0';
  KJ_SYSCALL(pwrite(file.fd(), text.data(), bytes, at));
}

// The link text alone proves nothing, because any open file may have that name: MemoryFile::adopt() checks the file itself.
std::optional<MemoryFile> open(pid_t pid, const std::string& descriptor) {
  std::string path = fmt::format("/proc/{}/fd/{}", pid, descriptor);
  char text[64];
  ssize_t length = readlink(path.c_str(), text, sizeof text);
  if (length < 0 || std::string(text, static_cast<size_t>(length)) != linkText) return std::nullopt;
  int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return std::nullopt;
  return MemoryFile::adopt(fd, fileBytes, fileBytes);
}

// Whether the process is stopped by a signal.
bool isStopped(pid_t pid) {
  std::ifstream status(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(status, text);
  size_t end = text.rfind(')');  // the process name in front of it may contain any character
  return end != text.npos && end + 2 < text.size() && text[end + 2] == 'T';
}

}  // namespace

ParkingPlace::ParkingPlace(const std::string& session) : file(MemoryFile::create(fileName, fileBytes)) {
  setText(file, sessionAt, sessionBytes, session);
}

std::optional<ParkingPlace::Call> ParkingPlace::called() const {
  if (stateOf(file) != State::called) return std::nullopt;
  return Call{textOf(file, textAt, textBytes), textOf(file, sessionAt, sessionBytes)};
}

void ParkingPlace::attached() const { setState(file, State::attached); }

void ParkingPlace::failed(const std::string& why) const {
  setText(file, textAt, textBytes, why);
  setState(file, State::failed);
}

std::optional<ParkedProgram> ParkedProgram::find(pid_t pid, const std::string& session) {
  struct stat process;
  std::string folder = fmt::format("/proc/{}", pid);
  if (pid <= 0 || stat(folder.c_str(), &process) != 0 || process.st_uid != geteuid()) return std::nullopt;
  DIR* directory = opendir((folder + "/fd").c_str());
  if (directory == nullptr) return std::nullopt;
  KJ_DEFER(closedir(directory));
  while (auto* entry = readdir(directory)) {
    auto file = open(pid, entry->d_name);
    if (file && textOf(*file, sessionAt, sessionBytes) == session) return ParkedProgram(pid, std::move(*file));
  }
  return std::nullopt;
}

void ParkedProgram::attach(const std::string& directory, const std::string& session, std::chrono::seconds limit) const {
  if (directory.size() >= textBytes) fail("the path of the state directory is too long for a parked program: " + directory);
  setText(file, textAt, textBytes, directory);
  setText(file, sessionAt, sessionBytes, session);
  setState(file, State::called);
  const std::string ended = fmt::format("the parked program (pid {}) has ended", pid);
  kj::AutoCloseFd process(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (process.get() < 0 && errno == ESRCH) fail(ended);
  if (process.get() < 0) KJ_FAIL_SYSCALL("pidfd_open", errno, pid);
  for (const auto late = std::chrono::steady_clock::now() + limit; std::chrono::steady_clock::now() < late;) {
    // In every round: a process that CRIU has just restored stops only when it next gets a processor.
    if (isStopped(pid)) kill(pid, SIGCONT);
    State state = stateOf(file);
    if (state == State::attached) return;
    if (state == State::failed)
      fail(fmt::format("the parked program (pid {}) cannot go on in {}: {}", pid, directory, textOf(file, textAt, textBytes)));
    pollfd end{process, POLLIN, 0};  // readable when the process has ended, even before it is reaped
    if (poll(&end, 1, lookMilliseconds) > 0) fail(ended);
  }
  fail(fmt::format("the parked program (pid {}) does not answer: is it stopped by a debugger?", pid));
}

bool ParkedProgram::isIn(const std::string& directory) const {
  return stateOf(file) == State::attached && textOf(file, textAt, textBytes) == directory;
}

}  // namespace vgpu
