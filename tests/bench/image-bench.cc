// What an image costs on its way to a worker, apart from the driver: named and found in the store, or copied as it is
// sent, and looked through for what the worker must know of it. Times are reported, never asserted.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "../objects/frames.h"
#include "stub/worker/blob.h"
#include "stub/worker/image-store.h"
#include "vgpu/wire/image-digest.h"
#include "vgpu/wire/segment.h"

namespace {

using namespace vgpu;
using namespace vgpu::stub;

// PTX text as a compiler writes it, of about so many bytes.
std::vector<std::byte> imageOf(int64_t bytes) {
  std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 runs;\n";
  for (unsigned line = 0; text.size() + 1 < static_cast<size_t>(bytes); ++line)
    text += "  mad.lo.u32 %r" + std::to_string(line % 97) + ", %r" + std::to_string(line % 89) + ", 40503, 69069;\n" +
            (line % 40 == 0 ? "  ld.global.f32 %f1, [%rd2];\n  mov.u64 %rd3, runs;\n" : "");
  auto span = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  return {span.begin(), span.end()};
}

void done(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

// The program's part where it asks.
void digest(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(digestOf(image));
  done(state, image.size());
}
BENCHMARK(digest)->Arg(50'000)->Arg(5'000'000);

// The worker's, where the node has the image: mapped, checked, its facts read.
void find(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  test::ScratchDirectory scratch;
  std::string problem;
  auto store = ImageStore::open(scratch.path + "/images", 1ull << 30, problem);
  auto name = digestOf(image);
  store->add(name, image, findFacts(image));
  for (auto _ : state) {
    auto found = store->find(name);
    if (!found) state.SkipWithError("it is not there");
  }
  done(state, image.size());
}
BENCHMARK(find)->Arg(50'000)->Arg(5'000'000);

// Where the worker has it in use already, as for another device.
void findInUse(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  test::ScratchDirectory scratch;
  std::string problem;
  auto store = ImageStore::open(scratch.path + "/images", 1ull << 30, problem);
  auto name = digestOf(image);
  store->add(name, image, findFacts(image));
  auto inUse = store->find(name);
  for (auto _ : state) benchmark::DoNotOptimize(store->find(name));
  done(state, image.size());
}
BENCHMARK(findInUse)->Arg(50'000)->Arg(5'000'000);

// Both parts where it does not: through slabs into memory of the worker's own.
void send(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  std::vector<std::byte> slabs(16 * slabBytes);
  for (auto _ : state) {
    auto blob = *Blob::reserve(Blob::Origin::program, image.size());
    for (size_t at = 0; at < image.size(); at += slabBytes) {
      size_t piece = std::min<size_t>(slabBytes, image.size() - at);
      std::byte* slab = &slabs[at % slabs.size()];
      std::memcpy(slab, &image[at], piece);
      blob.append({slab, piece});
    }
    benchmark::DoNotOptimize(blob.bytes().data());
  }
  done(state, image.size());
}
BENCHMARK(send)->Arg(50'000)->Arg(5'000'000);

// What every image costs once, sent or not.
void facts(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(findFacts(image));
  done(state, image.size());
}
BENCHMARK(facts)->Arg(50'000)->Arg(5'000'000);

// What the first load of an image costs besides: the worker's own digest, and the file.
void keep(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  auto known = findFacts(image);
  test::ScratchDirectory scratch;
  std::string problem, folder = scratch.path + "/images";
  auto store = ImageStore::open(folder, 1ull << 30, problem);
  for (auto _ : state) {
    auto name = digestOf(image);
    store->add(name, image, known);
    state.PauseTiming();
    std::filesystem::remove(folder + "/" + hexOf(name));
    state.ResumeTiming();
  }
  done(state, image.size());
}
BENCHMARK(keep)->Arg(50'000)->Arg(5'000'000);

}  // namespace

BENCHMARK_MAIN();
