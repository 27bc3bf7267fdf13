// The green contexts of one GPU: the driver's, made of its resources as the program has split the session's.
//
// A stream that the driver makes in a green context is ordered with no other. The program may have made one that blocks: it is
// ordered with the green context's default stream, which the worker sees to by events, when either is given work. As long as no
// such stream lives, that costs a comparison.
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

  struct Known {
    CUgreenCtx real = nullptr;
    std::shared_ptr<const Split> split;     // of which it is a part; null: of none
    uint64_t defaultStream = 0;             // virtual handles, of streams
    std::unordered_set<uint64_t> blocking;  // but for the default one
    CUevent order = nullptr;                // made with the first of them
  };

  Known& get(uint64_t green);  // throws BadHandle
  void add(uint64_t green, Known known) { live[green] = std::move(known); }
  // Takes one out that has no stream any more.
  Known take(uint64_t green);
  // Whether it is a stream of a green context. Launches in one are not folded: kernels of a graph run in the context that made their
  // nodes, with all of the GPU's multiprocessors.
  bool has(uint64_t stream) const { return !streams.empty() && streams.contains(stream); }
  CUresult addStream(Execution& on, uint64_t green, uint64_t stream, bool isDefault, bool blocks);

  // The driver's split for that key, asked for if no green context is a part of it.
  CUresult split(Execution& on, const SplitKey& key, std::shared_ptr<const Split>& found);

  // Whether any stream has to be ordered with others.
  bool orderStreams() const { return !greenOf.empty(); }
  // Before `stream` is given work.
  void order(Execution& on, uint64_t stream);
  // It ends, with what it has been given before whatever its default stream is given.
  CUresult forgetStream(Execution& on, uint64_t stream);

  // Of a context that a fault has ended.
  void drop();
  CUresult destroyEvents(Execution& on);

 private:
  CUresult follow(Execution& on, const Known& known, uint64_t stream, uint64_t before);

  std::unordered_map<uint64_t, Known> live;               // by virtual handle
  std::unordered_set<uint64_t> streams;
  std::unordered_map<uint64_t, uint64_t> greenOf;         // of streams that are ordered with others
  std::map<SplitKey, std::weak_ptr<const Split>> splits;
  uint64_t lastOrdered = 0;  // the stream that was given work last
};

}  // namespace vgpu::stub
