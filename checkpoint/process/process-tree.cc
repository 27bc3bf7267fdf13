#include "checkpoint/process/process-tree.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

namespace vgpu::process {

namespace {

namespace fs = std::filesystem;

bool isSameFile(const std::string& a, const std::string& b) {
  struct stat first, second;
  return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
         first.st_ino == second.st_ino;
}

// The name of the file that a process executes, even if the file was replaced since. Empty if there is no such process.
std::string executableOf(pid_t pid) {
  constexpr std::string_view removed = " (deleted)";
  std::error_code error;
  std::string name = fs::read_symlink(fmt::format("/proc/{}/exe", pid), error).filename();
  if (name.ends_with(removed)) name.resize(name.size() - removed.size());
  return name;
}

std::vector<pid_t> childrenOf(pid_t pid) {
  std::vector<pid_t> children;
  std::error_code error;
  for (fs::directory_iterator thread(fmt::format("/proc/{}/task", pid), error), end; !error && thread != end;
       thread.increment(error)) {
    std::ifstream list(thread->path() / "children");
    for (pid_t child; list >> child;) children.push_back(child);
  }
  return children;
}

// PF_EXITING of Linux: the process may still be closing its files before it is shown as ended.
constexpr unsigned exiting = 0x4;

}  // namespace

ProcessFacts factsOf(pid_t pid) {
  std::ifstream file(fmt::format("/proc/{}/stat", pid));
  std::string text;
  std::getline(file, text);
  size_t open = text.find('('), close = text.rfind(')');  // the process name may contain any character
  ProcessFacts facts;
  if (open == text.npos || close == text.npos) return facts;
  facts.name = text.substr(open + 1, close - open - 1);
  pid_t group;
  std::istringstream fields(text.substr(close + 1));
  unsigned flags = 0;
  std::string skipped;
  auto skip = [&](unsigned count) {  // proc(5): session is field 6, flags 9, starttime 22
    for (unsigned i = 0; i < count; ++i) fields >> skipped;
  };
  fields >> facts.state >> facts.parent >> group >> facts.session;
  skip(2);
  fields >> flags;
  skip(12);
  fields >> facts.start;
  facts.isEnding = (flags & exiting) != 0;
  return facts;
}

bool hasEnded(pid_t pid) {
  const ProcessFacts facts = factsOf(pid);
  return facts.state == 0 || facts.state == 'Z' || facts.isEnding;
}

std::string named(pid_t pid) { return fmt::format("process {} ({})", pid, factsOf(pid).name); }

bool runsThisProgram(pid_t pid) {
  if (isSameFile("/proc/self/exe", fmt::format("/proc/{}/exe", pid))) return true;
  const std::string name = executableOf(pid);
  return !name.empty() && name == executableOf(getpid());
}

pid_t rootOf(pid_t pid) {
  for (pid_t at = pid, parent; (parent = factsOf(at).parent) > 0; at = parent)
    if (runsThisProgram(parent)) return at;
  return pid;
}

std::vector<pid_t> treeOf(pid_t root) {
  std::vector<pid_t> all{root};
  for (size_t next = 0; next < all.size(); ++next)
    for (pid_t child : childrenOf(all[next])) all.push_back(child);
  return all;
}

bool hasOwnIds(pid_t pid) {
  std::error_code error;
  auto theirs = fs::read_symlink(fmt::format("/proc/{}/ns/pid", pid), error);
  return !error && theirs != fs::read_symlink("/proc/self/ns/pid", error) && !error;
}

}  // namespace vgpu::process
