// Cost of the object list for its recorder thread. An item is one frame; times are reported, never asserted.
#include <benchmark/benchmark.h>

#include "../objects/frames.h"

namespace {

using namespace vgpu;
using namespace vgpu::test;

constexpr uint64_t address = 0x2000'0000'0000;
constexpr uint64_t frames = 10'000;

// 10,000 allocations and 10,000 frees with a commit every `range` frames: with small batches the allocations reach the file; an allocation
// that is freed within its batch does not.
void createsThenDestroys(benchmark::State& state) {
  auto batch = static_cast<uint64_t>(state.range(0));
  ScratchDirectory scratch;
  auto list = ObjectList::open(scratch.path);
  uint64_t position = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < frames; i++) {
      list->apply(memAlloc(position += 64, address + i * 256));
      if (i % batch == batch - 1) list->commit();
    }
    for (uint64_t i = 0; i < frames; i++) {
      list->apply(memFree(position += 64, address + i * 256));
      if (i % batch == batch - 1) list->commit();
    }
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * 2 * frames));
}
BENCHMARK(createsThenDestroys)->Arg(10)->Arg(100)->Arg(1000)->Arg(10'000)->Unit(benchmark::kMillisecond);

// A program that allocates and frees in a loop, with one commit for all of it.
void pairsInOneBatch(benchmark::State& state) {
  ScratchDirectory scratch;
  auto list = ObjectList::open(scratch.path);
  uint64_t position = 0;
  for (auto _ : state) {
    for (uint64_t i = 0; i < frames; i++) {
      list->apply(memAlloc(position += 64, address));
      list->apply(memFree(position += 64, address));
    }
    list->commit();
  }
  state.SetItemsProcessed(static_cast<int64_t>(state.iterations() * 2 * frames));
}
BENCHMARK(pairsInOneBatch)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
