#include "intercept/session/copy/staged-copy.h"

#include <doctest/doctest.h>

#include <vector>

#include "fake-session.h"
#include "intercept/session/copy/copy-end.h"

namespace vgpu::client {

namespace {

constexpr uint64_t onDevice = deviceArenaBase;  // not allocated: a worker would check it, the fake session does not

CUresult copyIn(FakeSession& fake, std::vector<std::byte>& memory) {
  return copyFromPageable(fake.thread(), CopyEnd::memory(onDevice), CopyEnd::memory(toWire(memory.data())), {memory.size(), 1, 1}, 1, 0);
}
CUresult copyOut(FakeSession& fake, std::vector<std::byte>& memory) {
  return copyToPageable(fake.thread(), CopyEnd::memory(toWire(memory.data())), CopyEnd::memory(onDevice), {memory.size(), 1, 1}, 1, 0);
}

unsigned takenSlabs(const Session& session) {
  unsigned taken = 0;
  for (uint64_t slab = 0; slab < slabCount; ++slab) taken += session.segment.slabState(slab).busy.load() != 0;
  return taken;
}

}  // namespace

TEST_CASE("a copy whose last tile the worker refuses ends when the GPU has written the earlier tiles, and returns all slabs") {
  FakeSession& fake = FakeSession::one();
  const unsigned before = takenSlabs(fake.session);
  std::vector<std::byte> memory(2 * MiB);  // four tiles
  fake.refuseCopyBack(4, CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(copyOut(fake, memory) == CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(takenSlabs(fake.session) == before);
}

TEST_CASE("copies to a device that returns no slab continue in frames, and leave slabs for copies from it") {
  FakeSession& fake = FakeSession::one();
  std::vector<std::byte> few(16 * KiB), many(700 * KiB), read(2 * MiB);
  for (uint64_t copy = 0; copy < 2 * slabCount; ++copy) REQUIRE(copyIn(fake, few) == CUDA_SUCCESS);
  CHECK(takenSlabs(fake.session) < slabCount);
  CHECK(copyIn(fake, many) == CUDA_SUCCESS);
  CHECK(copyOut(fake, read) == CUDA_SUCCESS);
  CHECK(fake.count(api::Method::copy3d) > 2 * slabCount);
  for (uint64_t slab = 0; slab < slabCount; ++slab) fake.session.segment.slabState(slab).busy.store(0);
}

}  // namespace vgpu::client
