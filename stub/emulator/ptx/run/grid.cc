// A grid: its blocks are distributed to workers, and their output is joined in block order.
#include "stub/emulator/ptx/run/grid.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/pool.h"

namespace vgpu::emulator {
namespace {

constexpr int fullPatience = 64;     // turns of blocks that only spin, before one more block is started beside them
constexpr size_t mostResident = 64;  // blocks that one worker runs in turn
constexpr uint64_t mostSharedBytes = 227 * 1024;  // of a block of compute capability 9.0, the largest that is supported

// Returns the indices of clusters (of blocks, if a cluster has one block) in order, or in an order shuffled by the launch's seed.
class BlockSource {
 public:
  explicit BlockSource(const Grid& grid)
      : blocks(uint64_t{grid.launch.grid[0]} * grid.launch.grid[1] * grid.launch.grid[2] / grid.clusterBlocks()) {
    const Launch& launch = grid.launch;
    if (!launch.schedule || blocks > mostShuffled) return;
    shuffled.resize(blocks);
    std::iota(shuffled.begin(), shuffled.end(), 0);
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(launch.schedule));
  }
  std::optional<uint64_t> next() {
    const uint64_t index = nextIndex.fetch_add(1, std::memory_order_relaxed);
    if (index >= blocks) return std::nullopt;
    return shuffled.empty() ? index : shuffled[index];
  }
  uint64_t count() const { return blocks; }

 private:
  static constexpr uint64_t mostShuffled = 1 << 22;
  uint64_t blocks;
  std::atomic<uint64_t> nextIndex{0};
  std::vector<uint32_t> shuffled;
};

// Blocks that one worker reuses; kept by its thread for the next launch.
class BlockStore {
 public:
  std::unique_ptr<Block> take() {
    if (spare.empty()) return std::make_unique<Block>();
    auto block = std::move(spare.back());
    spare.pop_back();
    return block;
  }
  void giveBack(std::unique_ptr<Block> block) {
    if (spare.size() < mostKept) spare.push_back(std::move(block));
  }

 private:
  static constexpr size_t mostKept = 2;
  std::vector<std::unique_ptr<Block>> spare;
};

class OutputOrder {
 public:
  void add(uint64_t block, std::string text) {
    const std::lock_guard lock(mutex);
    bytes += text.size();
    texts.emplace(block, std::move(text));
    while (bytes > mostOutput && texts.size() > 1) {
      bytes -= texts.begin()->second.size();
      texts.erase(texts.begin());
    }
  }
  void append(std::string& output) {
    for (const auto& [block, text] : texts) output += text;
  }

 private:
  std::mutex mutex;
  size_t bytes = 0;
  std::map<uint64_t, std::string> texts;
};

class Worker {
 public:
  Worker(Grid& grid, BlockSource& source, OutputOrder& output) : grid(grid), source(source), output(output) {}

  // Blocks that spin take turns, and more are started beside them: so a grid whose blocks wait for each other ends, as on hardware that
  // holds them all at once.
  void run(size_t residentAtOnce) {
    thread_local BlockStore store;
    size_t turn = 0, waiting = 0;  // waiting: successive blocks that wait for others
    int patience = fullPatience;
    while (!grid.stopped.load(std::memory_order_relaxed)) {
      while (resident.size() < residentAtOnce && startOne(store)) {
      }
      if (resident.empty()) break;
      turn = turn % resident.size();
      const Block::Outcome outcome = resident[turn]->run();
      waiting = outcome == Block::Outcome::waiting ? waiting + 1 : 0;
      if (waiting > resident.size()) resident[turn]->stuck();
      if (outcome == Block::Outcome::arrived || outcome == Block::Outcome::waiting) {
        ++turn;
        continue;
      }
      if (outcome == Block::Outcome::yielded) {
        ++turn;
        if (--patience <= 0 && resident.size() < mostResident) {
          startOne(store);
          patience = fullPatience;
        }
        continue;
      }
      finish(store, turn);
    }
    for (auto& block : resident) {
      keepOutput(*block);
      store.giveBack(std::move(block));
    }
    for (auto& block : ended) store.giveBack(std::move(block));
  }

 private:
  bool startOne(BlockStore& store) {
    const auto index = source.next();
    if (!index) return false;
    if (grid.clusterBlocks() == 1) {
      resident.push_back(store.take());
      resident.back()->begin(grid, *index);
      return true;
    }
    clusters.push_back(std::make_unique<Cluster>());
    for (uint32_t rank = 0; rank < grid.clusterBlocks(); ++rank) {
      resident.push_back(store.take());
      resident.back()->begin(grid, grid.blockOf(*index, rank));
      resident.back()->join(*clusters.back(), rank);
    }
    return true;
  }

  void keepOutput(Block& block) {
    if (!block.output.empty()) output.add(block.linear(), std::move(block.output));
  }

  // A block is kept until its whole cluster has ended.
  void endInCluster(BlockStore& store, std::unique_ptr<Block> block) {
    Cluster& cluster = block->cluster();
    ended.push_back(std::move(block));
    if (std::ranges::any_of(cluster.blocks, [](Block* each) { return each->living() != 0; })) return;
    auto rest = std::ranges::partition(ended, [&](auto& each) { return &each->cluster() != &cluster; });
    for (auto& each : rest) store.giveBack(std::move(each));
    ended.erase(rest.begin(), rest.end());
    std::erase_if(clusters, [&](auto& each) { return each.get() == &cluster; });
  }

  void finish(BlockStore& store, size_t turn) {
    std::unique_ptr<Block> block = std::move(resident[turn]);
    resident.erase(resident.begin() + static_cast<std::ptrdiff_t>(turn));
    keepOutput(*block);
    if (grid.clusterBlocks() > 1) return endInCluster(store, std::move(block));
    if (const auto index = resident.empty() ? source.next() : std::nullopt) {
      block->begin(grid, *index);
      resident.push_back(std::move(block));
    } else {
      store.giveBack(std::move(block));
    }
  }

  Grid& grid;
  BlockSource& source;
  OutputOrder& output;
  std::vector<std::unique_ptr<Block>> resident;
  std::vector<std::unique_ptr<Cluster>> clusters;  // of resident blocks; empty if each has one block
  std::vector<std::unique_ptr<Block>> ended;       // blocks of clusters that have not ended
};

std::optional<Fault> refuse(const Launch& launch) {
  const auto fault = [&](std::string what) {
    return Fault{Fault::Kind::notSupported, "kernel " + launch.kernel->name + ": " + what};
  };
  const uint64_t threads = uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads == 0 || threads > 1024)
    return fault("blocks of " + std::to_string(threads) + " threads; 1 to 1024 are possible");
  const uint64_t shared = launch.kernel->sharedBytes(launch.dynamicSharedBytes);
  if (shared > mostSharedBytes)
    return fault(std::to_string(shared) + " bytes of shared memory; a block has " + std::to_string(mostSharedBytes));
  if (launch.parameters.size() < launch.kernel->parameterBytes)
    return fault(std::to_string(launch.parameters.size()) + " bytes of parameters, " +
                 std::to_string(launch.kernel->parameterBytes) + " are needed");
  return std::nullopt;
}

}  // namespace

std::optional<Fault> runGrid(const Launch& launch, WaitingWork& waiting, std::string& output, DeviceLaunches::Work& launched) {
  if (auto refused = refuse(launch)) return refused;
  Grid grid(launch, waiting);
  grid.parameters.assign(launch.parameters.begin(), launch.parameters.end());
  BlockSource source(grid);
  OutputOrder texts;
  const auto workers =
      static_cast<int>(std::clamp<uint64_t>(source.count(), 1, static_cast<uint64_t>(std::max(1, launch.workers))));
  runOnWorkers(workers, [&](int n) {
    const size_t resident = launch.cooperative ? (source.count() + n - 1) / n * grid.clusterBlocks() : 1;
    Worker(grid, source, texts).run(resident);
  });
  texts.append(output);
  if (!grid.fault && grid.stopped)
    grid.fault = Fault{Fault::Kind::timeout, "kernel " + launch.kernel->name + ": cancelled"};
  launched = grid.launches.take();
  return std::move(grid.fault);
}

}  // namespace vgpu::emulator
