#include "tools/vgpud/pinned-pool.h"

#include <errno.h>
#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "tools/vgpud/group-memory.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/helper-threads.h"
#include "vgpu/base/machine-memory.h"
#include "vgpu/base/sizes.h"
#include "vgpu/store/pinned-place.h"

namespace vgpu::daemon {
namespace {

// One thread populates pages at 1 to 2 GB/s, sixteen at 5 and more.
constexpr unsigned mostThreads = 16;
constexpr uint64_t bytesOfThread = 64 * MiB;

[[noreturn]] void refuse(uint64_t bytes, const std::string& why) {
  fail(fmt::format("cannot allocate {:.1f} GiB of pinned memory (--pinned): {}", static_cast<double>(bytes) / GiB, why));
}

// Allocates all pages. Returns 0 or an errno.
int populate(const MemoryFile& memory) {
  Mapping mapping(memory);
  madvise(mapping.data(), mapping.bytes(), MADV_HUGEPAGE);
  std::atomic<uint64_t> next{0};
  std::atomic<int> error{0};
  auto work = [&] {
    for (uint64_t at; error == 0 && (at = next.fetch_add(bytesOfThread)) < mapping.bytes();)
      if (madvise(mapping.data() + at, std::min(bytesOfThread, mapping.bytes() - at), MADV_POPULATE_WRITE) != 0) error = errno;
  };
  uint64_t parts = (mapping.bytes() + bytesOfThread - 1) / bytesOfThread;
  runWithHelpers(std::min<uint64_t>(std::clamp(std::thread::hardware_concurrency(), 1u, mostThreads), parts) - 1, work);
  return error;
}

MemoryFile make(uint64_t bytes) {
  if (bytes == 0) return {};
  uint64_t available = machineMemory().availableBytes;
  if (bytes > available) refuse(bytes, fmt::format("the machine has {:.1f} GiB available", static_cast<double>(available) / GiB));
  if (auto left = groupMemory(); left && bytes > *left)
    refuse(bytes,
           fmt::format(
               "the control group of this process leaves it {:.1f} GiB (cgroup, memory.max); raise that limit, or ask for less",
               static_cast<double>(*left) / GiB));
  MemoryFile memory = MemoryFile::create("vgpu-pinned", bytes);
  if (int error = populate(memory)) refuse(bytes, fmt::format("the system refused it: {}", strerror(error)));
  return memory;
}

template <typename Element>
std::vector<Element> arrayIn(capnp::Data::Reader data) {
  if (data.size() % sizeof(Element) != 0) fail("a list of chunks is truncated");
  std::vector<Element> elements(data.size() / sizeof(Element));
  if (!elements.empty()) std::memcpy(elements.data(), data.begin(), data.size());
  return elements;
}

DigestKey keyIn(capnp::Data::Reader data) {
  DigestKey key;
  if (data.size() != key.bytes.size()) fail("the key of digests has the wrong size");
  std::ranges::copy(data, key.bytes.begin());
  return key;
}

}  // namespace

PinnedPool::PinnedPool(uint64_t bytes)
    : chunks(roundUp(bytes, 2 * MiB)), memory(make(roundUp(bytes, 2 * MiB))), name(DigestKey::random().hex()) {}

// Finds all existing chunks first, so that none of them is removed to make room for the others.
kj::Promise<void> PinnedRoomServer::place(PlaceContext context) {
  auto params = context.getParams();
  auto names = arrayIn<ChunkName>(params.getNames());
  DigestKey key = keyIn(params.getKey());
  std::vector<PinnedPlace> places(names.size());
  for (size_t i = 0; i < names.size(); ++i)
    if (auto offset = hold->find({key, names[i]})) places[i] = {*offset, PinnedPlace::State::there};
  for (size_t i = 0; params.getMakesRoom() && i < names.size(); ++i)
    if (places[i].state == PinnedPlace::State::none)
      if (auto offset = hold->take(names[i].bytes)) places[i] = {*offset, PinnedPlace::State::room};
  auto* bytes = static_cast<const kj::byte*>(static_cast<const void*>(places.data()));
  context.getResults().setPlaces(kj::arrayPtr(bytes, places.size() * sizeof(PinnedPlace)));
  return kj::READY_NOW;
}

kj::Promise<void> PinnedRoomServer::name(NameContext context) {
  auto params = context.getParams();
  auto names = arrayIn<ChunkName>(params.getNames());
  auto offsets = arrayIn<uint64_t>(params.getOffsets());
  DigestKey key = keyIn(params.getKey());
  if (names.size() != offsets.size()) fail("not every chunk has a position");
  for (size_t i = 0; i < names.size(); ++i)
    if (!hold->name(offsets[i], {key, names[i]})) fail("a chunk has no room reserved by this operation");
  return kj::READY_NOW;
}

}  // namespace vgpu::daemon
