#include "tools/vgpuctl/native-held.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "checkpoint/process/process-tree.h"
#include "tools/common/reason.h"
#include "tools/vgpuctl/program-tree.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

bool lives(const HeldProcess& process) {
  const auto facts = process::factsOf(process.pid);
  return facts.state != 0 && facts.state != 'Z' && facts.start == process.start;
}

// Whether all processes of the snapshot still exist.
bool hasAll(const std::string& directory, const NativeList& list, const NativeHeld& held) {
  if (!lives(held.root)) return false;
  const auto tree = process::treeOf(held.root.pid);
  const auto saved = processesOf(snapshot::readProcessPart(directory, list.process));
  return std::ranges::all_of(saved,
                             [&](pid_t pid) { return std::ranges::find(tree, pid) != tree.end() && !process::hasEnded(pid); });
}

}  // namespace

NativeHeld heldOf(pid_t root, const std::vector<pid_t>& users) {
  auto one = [](pid_t pid) { return HeldProcess{pid, process::factsOf(pid).start}; };
  NativeHeld held{one(root), {}};
  for (pid_t user : users) held.users.push_back(one(user));
  return held;
}

std::string releaseHeld(const process::DriverCheckpoint& driver, const NativeHeld& held) {
  if (lives(held.root)) continueProcesses(process::treeOf(held.root.pid), {});
  std::string problem;
  for (auto& user : held.users) {
    if (!lives(user)) continue;
    continueProcesses({user.pid}, {});  // the driver works in a thread of the process
    KJ_IF_MAYBE (failure, kj::runCatchingExceptions([&] { driver.letGo(user.pid); }))
      if (lives(user)) problem += (problem.empty() ? "" : "; ") + reasonOf(*failure);
  }
  return problem;
}

bool putRightNative(const std::string& directory) {
  const auto held = readNativeHeld(directory);
  if (!held) return false;
  auto lock = lockNativeHeld(directory, false);
  const auto list = readNativeList(directory);
  const pid_t root = held->root.pid;
  const bool goesOn = list ? hasAll(directory, *list, *held) : lives(held->root);
  if (list && !goesOn) {
    if (lives(held->root)) endProcesses(process::treeOf(root));
    removeNativeHeld(directory);
    return false;
  }
  if (std::string problem = releaseHeld(process::DriverCheckpoint::open(), *held); !problem.empty())
    fail(fmt::format("a suspend to {} was killed, and process {} does not go on: {}", directory, root, problem));
  if (list)
    removeNativeHeld(directory);
  else
    std::filesystem::remove_all(directory);
  if (!goesOn) fail(fmt::format("process {} has ended, and its suspend to {} was killed before it was saved", root, directory));
  fmt::print("{} goes on: its suspend to {} was killed{}\n", process::named(root), directory,
             list ? ", and its snapshot is complete" : ", and nothing of the snapshot is left");
  return true;
}

}  // namespace vgpu::ctl
