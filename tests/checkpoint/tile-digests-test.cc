// The kernel that digests device memory, on the emulated device: the same digests as the host's.
#include "stub/gpu/tile-digests.h"

#include <doctest/doctest.h>

#include <cstring>

#include "../files.h"
#include "checkpoint/staging-ring.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"

using namespace vgpu;
using namespace vgpu::test;

TEST_CASE("the GPU's digests of tiles are the host's") {
  constexpr size_t tiles = 5;
  TestSession session;
  Digester digester(*DigestKey::parse("000102030405060708090a0b0c0d0e0f"));
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.runQuiesced([&](stub::SessionState& on) {
      auto& gpu = on.select(0).gpu;
      KJ_REQUIRE(gpu.digests.load());
      auto bytes = randomBytes(tiles * tileBytes, 1);
      std::memset(&bytes[tileBytes], 0, tileBytes);
      std::memset(&bytes[2 * tileBytes], 0xff, tileBytes);
      // In host memory that the GPU reaches: the first slot is digested, the digests are written to the second.
      checkpoint::StagingRing ring(&on.driver, 2);
      KJ_REQUIRE(ring.onGpu() != 0);
      std::memcpy(ring.all()[0].memory, bytes.data(), bytes.size());
      auto check = [&](CUresult result) { stub::require(on.driver, result, "the test's GPU"); };
      check(gpu.digests.digest(digester, ring.onGpu(), tiles, ring.onGpu() + snapshot::chunkBytes, gpu.progress.ownStream()));
      check(on.driver.cuStreamSynchronize(gpu.progress.ownStream()));
      std::vector<Digest> found(tiles);
      std::memcpy(found.data(), ring.all()[1].memory, tiles * sizeof(Digest));
      for (size_t tile = 0; tile < tiles; ++tile)
        KJ_REQUIRE(found[tile] == digester.ofTile(std::span(bytes).subspan(tile * tileBytes, tileBytes)), tile);
    });
  }) == "");
}
