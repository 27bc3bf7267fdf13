// A launch by the host: its grid, the grids that this launches, and so on.
//
// When a grid's blocks have ended, its children run one after the other in launch order, each with all its descendants, and then its tail
// launches likewise. So every grid begins after those for which it must wait in any stream, a parent is complete when its descendants are,
// and a tail launch of a tail launch runs before the grandparent's next one.
//
// Grids with waiting work are kept in a list, without recursion. A grid leaves the list when the last of its work begins, so kernels may
// launch themselves, as children or as tail launches, without end.
#include "stub/emulator/ptx/run/grid.h"
#include "stub/emulator/ptx/run/program.h"

namespace vgpu::emulator {
namespace {

class LaunchTree {
 public:
  LaunchTree(const Launch& root, std::string& output) : root(root), output(output) {}

  std::optional<Fault> run() {
    std::optional<Fault> fault = runGridOf(root);
    while (!fault && !levels.empty()) fault = isCancelled() ? cancelled() : runNext();
    return fault;
  }

 private:
  struct Level {
    const Kernel* kernel;  // of the grid
    DeviceLaunches::Work work;
  };

  std::optional<Fault> runGridOf(const Launch& launch) {
    DeviceLaunches::Work launched;
    std::optional<Fault> fault = runGrid(launch, waiting, output, launched);
    if (output.size() > 2 * mostOutput) output.erase(0, output.size() - mostOutput);
    if (!launched.empty()) levels.push_back({launch.kernel, std::move(launched)});
    return fault;
  }

  std::optional<Fault> runNext() {
    Level& level = levels.back();
    const Kernel* const parent = level.kernel;
    const bool isTail = level.work.children.empty();
    std::deque<DeviceWork>& list = isTail ? level.work.tails : level.work.children;
    const DeviceWork work = std::move(list.front());
    list.pop_front();
    // Grids of this launch run one at a time, started by this thread, so no other thread changes the counts now.
    waiting.all.fetch_sub(1, std::memory_order_relaxed);
    if (isTail) waiting.tails.fetch_sub(1, std::memory_order_relaxed);
    if (level.work.empty()) levels.pop_back();
    std::optional<Fault> fault = std::visit([this](const auto& each) { return begin(each); }, work);
    if (fault) fault->report += "; launched by kernel " + parent->name;
    return fault;
  }

  std::optional<Fault> begin(const ChildGrid& child) {
    Launch launch = root;
    const std::array<uint32_t, 3>& cluster = child.kernel->attributes.cluster;
    launch.kernel = child.kernel;
    launch.grid = child.shape.grid;
    launch.block = child.shape.block;
    launch.dynamicSharedBytes = child.shape.dynamicSharedBytes;
    launch.cluster = cluster[0] != 0 ? cluster : std::array<uint32_t, 3>{1, 1, 1};
    launch.explicitCluster = cluster[0] != 0;
    launch.cooperative = false;
    launch.parameters = child.parameters;
    return runGridOf(launch);
  }
  std::optional<Fault> begin(const DeviceCopy& copy) { return execute(copy, *root.memory); }
  std::optional<Fault> begin(const DeviceFill& fill) { return execute(fill, *root.memory); }

  bool isCancelled() const { return root.cancelled && root.cancelled->load(std::memory_order_relaxed); }
  Fault cancelled() const { return {Fault::Kind::timeout, "kernel " + root.kernel->name + ": cancelled"}; }

  const Launch& root;
  std::string& output;
  WaitingWork waiting;
  std::vector<Level> levels;  // ended grids with waiting work, each launched by the one before or by a descendant of it
};

}  // namespace

std::optional<Fault> run(const Launch& launch, std::string& output) { return LaunchTree(launch, output).run(); }

}  // namespace vgpu::emulator
