#include "tools/vgpuctl/program-tree.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/process/survey.h"
#include "tools/common/session-lookup.h"
#include "tools/vgpuctl/session-info.h"
#include "vgpu/base/fail.h"
#include "vgpu/control/parked-program.h"

namespace vgpu::ctl {
namespace {

namespace fs = std::filesystem;

void requireRunning(control::SessionInfo::Reader session) {
  if (session.getState() == control::State::RUNNING) return;
  fail(fmt::format("session {} (pid {}) is {}: it can be saved with its process only while it runs", session.getId().cStr(),
                   session.getPid(), stateName(session.getState())));
}

void requireHere(const TreeSession& session) {
  std::error_code error;
  std::string executable = fs::read_symlink(fmt::format("/proc/{}/exe", session.pid), error);
  if (error || executable != session.program)
    fail(fmt::format(
        "the process of {} cannot be saved here: process {} is {}, not {}. If the program is on another host, only its GPU can "
        "be suspended",
        session.id, session.pid, error ? error.message() : executable, session.program));
}

// The descriptors of a process that ends during the check seem to belong to nobody, so the check is repeated and only obstacles that remain
// count.
std::vector<std::string> obstaclesOf(pid_t root, const process::Criu& criu) {
  constexpr unsigned mostLooks = 5, pauseMicroseconds = 20000;
  std::vector<std::string> obstacles;
  for (unsigned look = 0; look < mostLooks; ++look, usleep(pauseMicroseconds))
    if (obstacles = process::obstaclesOf(root, criu.savesNetworkSockets()); obstacles.empty()) break;
  return obstacles;
}

void awaitEnd(pid_t pid) {
  constexpr unsigned mostMilliseconds = 10000;
  for (unsigned i = 0; i < mostMilliseconds; ++i, usleep(1000))
    if (process::hasEnded(pid)) return;
  fail(fmt::format("process {} has not ended 10 s after it was killed", pid));
}

}  // namespace

ProgramTree findTree(NodeClient& client, const std::string& session, const std::string& directory) {
  auto answer = client.wait(client.node().listRequest().send());
  auto all = answer.getSessions();
  std::vector<SessionKey> keys;
  for (auto one : all) keys.push_back({one.getId(), one.getName(), one.getPid()});
  const auto wanted = static_cast<unsigned>(lookUpSession(keys, session));
  ProgramTree tree{process::rootOf(all[wanted].getPid()), {}};
  const auto processes = process::treeOf(tree.root);
  auto add = [&](control::SessionInfo::Reader one) {
    requireRunning(one);
    std::string id = one.getId();
    std::string where = tree.sessions.empty() ? directory : snapshot::sessionFolderOf(directory, id);
    tree.sessions.push_back({id, one.getName(), one.getProgram(), where, one.getPid()});
  };
  add(all[wanted]);
  for (unsigned i = 0; i < all.size(); ++i)
    if (i != wanted && std::ranges::find(processes, all[i].getPid()) != processes.end()) add(all[i]);
  return tree;
}

void requireSavable(const ProgramTree& tree, const process::Criu& criu) {
  for (auto& session : tree.sessions) requireHere(session);
  auto obstacles = obstaclesOf(tree.root, criu);
  if (obstacles.empty()) return;
  std::string all;
  for (auto& one : obstacles) all += (all.empty() ? "" : "; ") + one;
  std::error_code error;
  std::string program = fs::read_symlink(fmt::format("/proc/{}/exe", tree.root), error);
  fail(fmt::format("process {} ({}) cannot be saved: {}. It goes on", tree.root, program, all));
}

// All processes get SIGCONT: one that is not shown as stopped may be about to stop, because CRIU returns once it has sent the signal.
void continueProcesses(const std::vector<pid_t>& processes, const std::vector<int>& except) {
  for (pid_t pid : processes)
    if (std::ranges::find(except, pid) == except.end()) kill(pid, SIGCONT);
}

std::vector<pid_t> processesOf(const snapshot::ProcessPart& part) {
  std::vector<pid_t> all;
  for (auto& process : part.processes) all.push_back(process.pid);
  return all;
}

void endProcesses(const std::vector<pid_t>& processes) {
  auto end = [](pid_t pid) {
    kill(pid, SIGKILL);
    awaitEnd(pid);
  };
  for (size_t last = processes.size(); last > 0; --last) end(processes[last - 1]);
}

}  // namespace vgpu::ctl
