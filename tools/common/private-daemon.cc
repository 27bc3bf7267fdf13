#include "tools/common/private-daemon.h"

#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <thread>

#include "tools/common/installation.h"
#include "tools/common/spawn.h"
#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

// Our program may have been suspended and resumed by another daemon, which removes the program's state directory when it ends.
constexpr auto removalLimit = std::chrono::seconds(2);

}  // namespace

std::string makePrivateDirectory() {
  const char* base = std::getenv("XDG_RUNTIME_DIR");
  if (base == nullptr || access(base, W_OK) != 0) base = std::getenv("TMPDIR");
  std::string pattern = std::string(base == nullptr ? "/tmp" : base) + "/vgpu-run-XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) {
    fail("no vgpud runs, and a private one cannot be started: cannot make a directory " + pattern + ": " + strerror(errno));
  }
  return pattern;
}

std::vector<std::string> removePrivateDirectory(const std::string& directory) {
  std::vector<std::string> kept;
  std::error_code error;
  std::filesystem::directory_iterator entry(directory + "/sessions", error), end;
  for (; !error && entry != end; entry.increment(error)) kept.push_back(entry->path());
  if (kept.empty()) std::filesystem::remove_all(directory, error);
  return kept;
}

void awaitPrivateRemoval(const std::string& directory) {
  auto limit = std::chrono::steady_clock::now() + removalLimit;
  while (!removePrivateDirectory(directory).empty() && std::chrono::steady_clock::now() < limit)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

PrivateDaemon::PrivateDaemon(const std::vector<std::string>& options) {
  node.directory = makePrivateDirectory();
  try {
    int ends[2];
    KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
    kj::AutoCloseFd ours(ends[0]), theirs(ends[1]);
    SpawnRequest request;
    request.executable = binaryFile("vgpud");
    request.arguments = {"vgpud", "--private", "--log-level", "warn", "--run-dir", node.directory};
    request.arguments.insert(request.arguments.end(), options.begin(), options.end());
    request.inherits = {{theirs.get(), STDOUT_FILENO}};
    request.deathSignal = SIGTERM;
    request.ownGroup = true;
    process = spawn(request);
    theirs = nullptr;
    awaitReady(ours);
  } catch (...) {
    end();  // the destructor does not run if the constructor throws
    throw;
  }
}

PrivateDaemon::~PrivateDaemon() { end(); }

void PrivateDaemon::awaitReady(int output) {
  std::string line;
  char next;
  while (line.empty() || line.back() != '\n') {
    ssize_t got = read(output, &next, 1);
    if (got == 1) {
      line += next;
    } else if (got == 0 || errno != EINTR) {
      fail("a private vgpud could not be started; its messages are above");
    }
  }
  size_t parenthesis = line.find('(');
  if (parenthesis != std::string::npos) description = line.substr(parenthesis, line.rfind(')') - parenthesis + 1);
}

void PrivateDaemon::end() {
  if (process > 0) {
    kill(process, SIGTERM);
    reapChild(process);
    process = 0;
  }
  awaitPrivateRemoval(node.directory);
}

}  // namespace vgpu
