// A worker's state of the green contexts of one GPU besides their handles: the driver's splits to which they belong, and their streams.
//
// Used by the thread of that GPU. Recipes remake all of it; a snapshot keeps none.
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
  // The groups of a split, then the remainder. Green contexts made from parts of one split share no multiprocessor, so they must use the
  // result of one driver call.
  using Split = std::vector<CUdevResource>;
  // Parent (0: the device), and the flags, least multiprocessors and groups of the split.
  using SplitKey = std::tuple<uint64_t, uint32_t, uint32_t, uint32_t>;

  // The driver's split for that key; made anew if no green context uses it.
  CUresult split(Execution& on, const SplitKey& key, std::shared_ptr<const Split>& found);

  // `split`: the split to which the green context, a virtual handle, belongs; null: none.
  void add(uint64_t green, std::shared_ptr<const Split> split) { splitOf[green] = std::move(split); }
  void remove(uint64_t green);

  void addStream(uint64_t stream) { streams.insert(stream); }
  void forgetStream(uint64_t stream) { streams.erase(stream); }
  // Whether the stream belongs to a green context. Launches in such a stream are not folded: kernels of a graph run in the context in which
  // their nodes were made, with all of the GPU's multiprocessors.
  bool has(uint64_t stream) const { return !streams.empty() && streams.contains(stream); }

  void drop();

 private:
  std::unordered_map<uint64_t, std::shared_ptr<const Split>> splitOf;
  std::map<SplitKey, std::weak_ptr<const Split>> splits;
  std::unordered_set<uint64_t> streams;  // virtual handles
};

}  // namespace vgpu::stub
