// What a worker keeps of the green contexts of one GPU beside their handles: the driver's splits that they are parts of, and
// their streams.
//
// Used by the thread of that GPU. Recipes bring back all of it; a snapshot keeps no state of them.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace vgpu::stub {

class Execution;

class GreenContexts {
 public:
  // The groups of a split, the remainder behind them. Green contexts that are parts of one have no multiprocessor in common, so they
  // share what the driver said once.
  using Split = std::vector<CUdevResource>;
  // Parent (0: the device), flags, least, groups that were asked for.
  using SplitKey = std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>;

  // The driver's split for that key, asked for if no green context is a part of it.
  CUresult split(Execution& on, const SplitKey& key, std::shared_ptr<const Split>& found);

  // `split`: of which the green context, a virtual handle, is a part; null: of none.
  void add(uint64_t green, std::shared_ptr<const Split> split) { splitOf[green] = std::move(split); }
  void remove(uint64_t green);

  void addStream(uint64_t stream) { streams.insert(stream); }
  void forgetStream(uint64_t stream) { streams.erase(stream); }
  // Whether it is a stream of a green context. Launches in one are not folded: kernels of a graph run in the context that made their
  // nodes, with all of the GPU's multiprocessors.
  bool has(uint64_t stream) const { return !streams.empty() && streams.contains(stream); }

  void drop();

 private:
  std::unordered_map<uint64_t, std::shared_ptr<const Split>> splitOf;
  std::map<SplitKey, std::weak_ptr<const Split>> splits;
  std::unordered_set<uint64_t> streams;  // virtual handles
};

}  // namespace vgpu::stub
