// What it costs to bring an image to a worker, apart from the driver: named and found in the store, or copied in pieces, and scanned for
// the facts that the worker needs. Times are reported, never asserted.
#include <benchmark/benchmark.h>

#include <cstring>
#include <vector>

#include "../image-folder.h"
#include "stub/worker/blob.h"
#include "vgpu/wire/segment.h"

namespace {

using namespace vgpu;
using namespace vgpu::stub;

// PTX text as a compiler writes it, of about `bytes` bytes.
std::vector<std::byte> imageOf(int64_t bytes) {
  std::string text = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .global .align 4 .u32 runs;\n";
  for (unsigned line = 0; text.size() + 1 < static_cast<size_t>(bytes); ++line)
    text += "  mad.lo.u32 %r" + std::to_string(line % 97) + ", %r" + std::to_string(line % 89) + ", 40503, 69069;\n" +
            (line % 40 == 0 ? "  ld.global.f32 %f1, [%rd2];\n  mov.u64 %rd3, runs;\n" : "");
  auto span = std::as_bytes(std::span(text.c_str(), text.size() + 1));
  return {span.begin(), span.end()};
}

// An image that the node has in its store.
struct Stored {
  explicit Stored(int64_t bytes) : image(imageOf(bytes)) { store.add(name, image, findFacts(image)); }
  auto find() { return store.find(name); }

  const std::vector<std::byte> image;
  const test::ImageFolder folder;
  ImageStore store = folder.open();
  const ImageDigest name = digestOf(image);
};

void done(benchmark::State& state, size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(state.iterations() * bytes));
}

// The program's part of a lookup: the digest.
void digest(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(digestOf(image));
  done(state, image.size());
}
BENCHMARK(digest)->Arg(50'000)->Arg(5'000'000);

// The worker's part, if the node has the image: maps it, checks it, reads its facts.
void find(benchmark::State& state) {
  Stored stored(state.range(0));
  for (auto _ : state) {
    auto found = stored.find();
    if (!found) state.SkipWithError("it is not there");
  }
  done(state, stored.image.size());
}
BENCHMARK(find)->Arg(50'000)->Arg(5'000'000);

// The worker's part if it already uses the image, as for another device.
void findInUse(benchmark::State& state) {
  Stored stored(state.range(0));
  auto inUse = stored.find();
  for (auto _ : state) benchmark::DoNotOptimize(stored.find());
  done(state, stored.image.size());
}
BENCHMARK(findInUse)->Arg(50'000)->Arg(5'000'000);

// Both parts if the node lacks the image: copied through slabs into the worker's own memory.
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

// The cost of each image, whether it is sent or found.
void facts(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(findFacts(image));
  done(state, image.size());
}
BENCHMARK(facts)->Arg(50'000)->Arg(5'000'000);

// Additional cost of an image's first load: the worker's own digest, and writing the file.
void keep(benchmark::State& state) {
  auto image = imageOf(state.range(0));
  auto known = findFacts(image);
  test::ImageFolder folder;
  auto store = folder.open();
  for (auto _ : state) {
    store.add(digestOf(image), image, known);
    state.PauseTiming();
    std::filesystem::remove(folder.fileOf(image));
    state.ResumeTiming();
  }
  done(state, image.size());
}
BENCHMARK(keep)->Arg(50'000)->Arg(5'000'000);

}  // namespace

BENCHMARK_MAIN();
