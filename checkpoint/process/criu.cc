#include "checkpoint/process/criu.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

#include "checkpoint/process/work-folder.h"
#include "vgpu/base/fail.h"

namespace vgpu::process {

namespace {

namespace fs = std::filesystem;

constexpr unsigned leastVersion = 4;
constexpr std::array firstWithoutPassCred{4u, 2u, 1u};  // for TCP or UDP sockets
constexpr const char* whatToDo = "`tools/setup` builds it into .deps/criu; or name its executable in VGPU_CRIU";

bool canRun(const std::string& path) { return access(path.c_str(), X_OK) == 0 && fs::is_regular_file(path); }

// Administrators' programs may be missing in a user's PATH.
std::optional<std::string> findInPath() {
  const char* path = std::getenv("PATH");
  std::string folders = fmt::format("{}:/usr/local/sbin:/usr/sbin:/sbin", path == nullptr ? "" : path);
  for (size_t at = 0; at < folders.size();) {
    size_t end = std::min(folders.find(':', at), folders.size());
    std::string file = folders.substr(at, end - at) + "/criu";
    if (file.front() == '/' && canRun(file)) return file;
    at = end + 1;
  }
  return std::nullopt;
}

std::string findFile() {
  if (const char* named = std::getenv("VGPU_CRIU"); named != nullptr && *named != '\0') {
    if (!canRun(named))
      fail(fmt::format("VGPU_CRIU names {}, which is not an executable file: set it to the criu of version 4 or newer, which saves and "
                       "restores processes", named));
    return named;
  }
  if (canRun(VGPU_CRIU_HERE)) return VGPU_CRIU_HERE;
  if (auto found = findInPath()) return *found;
  fail(fmt::format("CRIU, which saves and restores processes, was not found: {}", whatToDo));
}

struct Outcome {
  bool succeeded = false;
  std::string output;
};

// The descriptor numbers under which the programs that we run find our standard streams.
constexpr int ownStreams = 100;

// Runs a program; returns whether it succeeded and what it wrote. `ownGroup`: in its own process group, so that the terminal's signals do
// not reach it.
Outcome execute(const std::vector<std::string>& words, bool ownGroup) {
  int ends[2];
  KJ_SYSCALL(pipe2(ends, O_CLOEXEC));
  kj::AutoCloseFd input(ends[0]), output(ends[1]);
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_t child;
  KJ_SYSCALL(child = fork());
  if (child == 0) {
    if (ownGroup) setpgid(0, 0);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; ++stream) dup2(stream, ownStreams + stream);
    dup2(output, STDOUT_FILENO);
    dup2(output, STDERR_FILENO);
    execv(argv[0], argv.data());
    _exit(127);
  }
  output = nullptr;
  Outcome outcome;
  char piece[4096];
  for (ssize_t count; (count = read(input, piece, sizeof piece)) != 0;) {
    if (count > 0)
      outcome.output.append(piece, static_cast<size_t>(count));
    else if (errno != EINTR)
      break;
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.succeeded = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  return outcome;
}

// In "Error (criu/sk-unix.c:874): unix: External socket is used." the reason is the text after the second colon.
std::string reasonIn(const std::string& line) {
  size_t error = line.find("Error ("), end = error == line.npos ? line.npos : line.find("): ", error);
  return end == line.npos ? "" : line.substr(end + 3);
}

// The first line that is not a warning: CRIU reports a missing capability without marking the line as an error.
std::string firstPlainLine(const std::string& log) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);)
    if (!line.empty() && !line.starts_with("Warn ")) return line.substr(0, line.find_last_not_of(": ") + 1);
  return "";
}

// The first errors of a log: later ones are consequences. CRIU's complaint about its own resource limit does not count.
std::string reasonsIn(const std::string& log) {
  constexpr unsigned most = 2;
  std::string reasons;
  unsigned count = 0;
  for (size_t at = 0, end; at < log.size() && count < most; at = end + 1) {
    end = std::min(log.find('\n', at), log.size());
    std::string reason = reasonIn(log.substr(at, end - at));
    if (reason.empty() || reason.find("RLIMIT_NOFILE") != reason.npos) continue;
    reasons += (count++ == 0 ? "" : "; ") + reason;
  }
  if (reasons.empty()) reasons = firstPlainLine(log);
  return reasons.empty() ? "it gives no reason" : reasons;
}

std::string logIn(const WorkFolder& folder) {
  std::ifstream file(folder.path() + "/log");
  return {std::istreambuf_iterator<char>(file), {}};
}

// Without root, CRIU needs a capability, and must be told to skip what it then cannot do.
std::vector<std::string> privilege() {
  if (geteuid() == 0) return {};
  return {"--unprivileged"};
}

// Passes our own standard streams for pipes whose other end belonged to another process.
std::vector<std::string> inherited(const std::vector<snapshot::ForeignPipe>& pipes) {
  std::vector<std::string> words;
  for (auto& pipe : pipes) {
    words.emplace_back("--inherit-fd");
    words.push_back(fmt::format("fd[{}]:{}", ownStreams + pipe.descriptor, pipe.name));
  }
  return words;
}

}  // namespace

Criu Criu::find() {
  std::string path = findFile(), said = execute({path, "--version"}, true).output;
  unsigned major = 0;
  size_t at = said.find("Version: ");
  std::string version = at == said.npos ? "" : said.substr(at + 9, said.find_first_of("\n ", at + 9) - at - 9);
  if (sscanf(version.c_str(), "%u", &major) != 1) fail(fmt::format("{} is not CRIU: it does not print its version", path));
  if (major < leastVersion)
    fail(fmt::format("{} is CRIU {}, but version {} or newer is needed: {}", path, version, leastVersion, whatToDo));
  std::vector<std::string> check{path, "check"};
  for (auto& word : privilege()) check.push_back(word);
  Outcome outcome = execute(check, true);
  if (!outcome.succeeded)
    fail(fmt::format(
        "{} does not work here: {}. {}", path, reasonsIn(outcome.output),
        geteuid() == 0
            ? "The kernel or container lacks what `criu check` names"
            : "Run vgpuctl as root, or as root: setcap cap_checkpoint_restore,cap_sys_ptrace,cap_setpcap+eip " + path));
  return Criu(path, version);
}

bool Criu::savesNetworkSockets() const {
  std::array<unsigned, 3> parts{};
  sscanf(versionText.c_str(), "%u.%u.%u", &parts[0], &parts[1], &parts[2]);
  if (parts >= firstWithoutPassCred) return true;
  kj::AutoCloseFd probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(probe, SOL_SOCKET, SO_PASSCRED, &value, &size) == 0;
}

void Criu::run(const std::string& doing, std::vector<std::string> arguments, bool ownGroup) const {
  WorkFolder work;
  std::vector<std::string> words{path};
  words.insert(words.end(), arguments.begin(), arguments.end());
  // Control groups belong to the machine; network locks are for connections, and those are refused.
  for (const char* word : {"--work-dir", work.path().c_str(), "--log-file", "log", "-v1", "--manage-cgroups=ignore",
                           "--network-lock", "skip", "--file-locks"})
    words.emplace_back(word);
  for (auto& word : privilege()) words.push_back(word);
  if (!execute(words, ownGroup).succeeded) fail(fmt::format("CRIU {} cannot {}: {}", versionText, doing, reasonsIn(logIn(work))));
}

void Criu::dump(pid_t root, const std::string& folder, bool isShellJob) const {
  constexpr const char* mostGhostBytes = "1G";  // limit for a deleted file that is still open
  std::vector<std::string> words{"dump", "--tree",          std::to_string(root), "--images-dir",
                                 folder, "--leave-stopped", "--ghost-limit",      mostGhostBytes};
  if (isShellJob) words.emplace_back("--shell-job");
  run(fmt::format("save process {}", root), std::move(words), true);
}

void Criu::restore(const std::string& folder, const snapshot::ProcessPart& part) const {
  std::vector<std::string> words{"restore", "--images-dir", folder, "--restore-detached", "--restore-sibling", "--leave-stopped"};
  if (part.shellJob) words.emplace_back("--shell-job");
  for (auto& word : inherited(part.pipes)) words.push_back(word);
  run(fmt::format("restore process {}", part.pid), std::move(words), false);
}

}  // namespace vgpu::process
