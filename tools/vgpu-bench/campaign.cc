#include "tools/vgpu-bench/campaign.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <set>
#include <thread>

#include "tools/common/installation.h"
#include "tools/common/node-client.h"

namespace vgpu::bench {
namespace {

// The worker of a run ends after its program, and another one is started to replace it; starting a driver takes 0.2 to 0.4 s
// (docs/facts.md). The next run would share the processor and the driver's lock with both, so it waits; this time counts for neither side.
constexpr auto replacement = std::chrono::milliseconds(400), ending = std::chrono::milliseconds(250);
// As many workers as programs run at the same time.
constexpr const char* warm = "8";
constexpr auto warming = std::chrono::seconds(4);

// How long a daemon may take to notice that a program has ended.
constexpr std::chrono::milliseconds polling{10}, reporting{2000};

constexpr const char* nativeDriver = "/dev/nvidiactl";

struct Launches {
  uint64_t all = 0, folded = 0;
};

// Of all ended sessions of the node.
Launches launchesOf(const NodeAddress& node) {
  NodeClient client(node);
  auto before = client.wait(client.node().listRequest().send());
  return {before.getBefore().getAll(), before.getBefore().getFolded()};
}

}  // namespace

Campaign::Campaign(const BenchOptions& options) : options(options) {
  if (options.node.empty()) {
    daemon = std::make_unique<PrivateDaemon>(std::vector<std::string>{"--device", options.device, "--warm", warm});
    nodeName = daemon->devices();
    nodeAddress = "unix:" + daemon->address().controlSocket();
  } else {
    nodeAddress = "unix:" + resolveNode(options.node).controlSocket();
    nodeName = nodeAddress;
  }
  native = !isEmulated() && access(nativeDriver, F_OK) == 0;
  if (native) std::this_thread::sleep_for(warming);
}

std::vector<std::string> Campaign::commandOf(const Case& measured, Side side) const {
  std::vector<std::string> command = measured.command;
  if (options.command.empty()) command.front() = libraryFile("bench/" + command.front());
  if (side == Side::native) return command;
  std::vector<std::string> all = {binaryFile("vgpuctl"), "--node", nodeAddress, "run", "--"};
  all.insert(all.end(), command.begin(), command.end());
  return all;
}

// A virtual run, with the share of its launches that the worker has folded. The daemon knows it once the session has ended.
Run Campaign::runCounted(const Case& measured) const {
  Launches before = launchesOf(resolveNode(nodeAddress));
  Run run = runCopies(commandOf(measured, Side::virtualized), measured.copies, options.command.empty());
  Launches after = before;
  for (auto waited = polling; after.all == before.all && waited < reporting; waited += polling) {
    std::this_thread::sleep_for(polling);
    after = launchesOf(resolveNode(nodeAddress));
  }
  auto all = static_cast<double>(after.all - before.all), folded = static_cast<double>(after.folded - before.folded);
  if (all > 0) run.folded = 100 * folded / all;
  return run;
}

Run Campaign::runOnce(const Case& measured, Side side) const {
  Run run = measured.countsLaunches && side == Side::virtualized
                ? runCounted(measured)
                : runCopies(commandOf(measured, side), measured.copies, options.command.empty());
  if (side == Side::virtualized && native) std::this_thread::sleep_for(replacement + ending * (measured.copies - 1));
  return run;
}

Results Campaign::measure(const std::vector<Case>& cases, bool quick) {
  Results results;
  results.node = nodeName;
  results.rounds = options.rounds;
  results.quick = quick;
  results.hasNative = native;
  std::vector<Side> sides;
  if (native) sides.push_back(Side::native);
  sides.push_back(Side::virtualized);
  std::set<std::string> hasRun;
  for (size_t i = 0; i < cases.size(); ++i) {
    fmt::print(stderr, "vgpu-bench: {}/{} {}\n", i + 1, cases.size(), cases[i].name);
    // A warm-up run for costs that only a program's first run has, on either side: reading pages from disk, machine code for kernels.
    if (!quick && hasRun.insert(cases[i].command.front()).second) {
      for (Side side : sides) runOnce(cases[i], side);
    }
    for (int round = 0; round < options.rounds; ++round) {
      for (Side side : sides) results.add(cases[i], side, runOnce(cases[i], side));
    }
  }
  results.conclude();
  return results;
}

}  // namespace vgpu::bench
