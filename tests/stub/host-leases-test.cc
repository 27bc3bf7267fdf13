// What a session may have of its host's memory, and where.
#include "stub/worker/host-leases.h"

#include <doctest/doctest.h>

#include <cstring>
#include <limits>

using namespace vgpu;
using namespace vgpu::stub;

namespace {

constexpr uint64_t arena = hostArenaBase, elsewhere = 0x5500'0000'0000;  // where nobody has anything, a sanitizer included

// A pool over a driver that registers whatever it is given.
struct Pool {
  explicit Pool(HostLimits limits) : pool(driver, std::move(limits)) {
    driver.cuMemHostRegister_v2 = [](void*, size_t, unsigned) { return CUDA_SUCCESS; };
    driver.cuMemHostUnregister = [](void*) { return CUDA_SUCCESS; };
  }
  CUresult lease(uint64_t address, uint64_t bytes) { return pool.lease(address, bytes, file); }
  CUresult endLease(uint64_t address) { return pool.endLease(address, file); }
  CUresult adopt(uint64_t address, uint64_t arenaAddress, uint64_t bytes) {
    return pool.adopt(address, arenaAddress, bytes, file);
  }
  CUresult release(uint64_t address) { return pool.release(address, file); }
  // As the program does, which has the arena too.
  void touch(uint64_t offset, uint64_t bytes) { std::memset(mapped.data() + offset, 1, bytes); }

  MemoryFile file = MemoryFile::create("vgpu-test-arena", hostArenaBytes);
  Mapping mapped{file, fromAddress(arena)};
  Driver driver;
  HostLeases pool;

 private:
  static void* fromAddress(uint64_t address) { return reinterpret_cast<void*>(address); }
};

constexpr uint64_t plenty = std::numeric_limits<uint64_t>::max();
HostLimits limited(uint64_t bytes, uint64_t pieces, uint64_t available) {
  return {bytes, pieces, [available] { return available; }};
}

constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE, full = CUDA_ERROR_OUT_OF_MEMORY;

}  // namespace

TEST_CASE("a part of the host arena is leased or adopted once, whatever the address") {
  Pool pool(limited(plenty, plenty, plenty));
  CHECK(pool.adopt(elsewhere, arena + 64 * KiB, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 64 * KiB, 64 * KiB) == invalid);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 124 * KiB, 64 * KiB) == invalid);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 60 * KiB, 8 * KiB) == invalid);
  CHECK(pool.lease(arena, 1 * MiB) == invalid);
  CHECK(pool.lease(arena + 68 * KiB, 4 * KiB) == invalid);
  CHECK(pool.lease(arena + 1 * MiB, 1 * MiB) == CUDA_SUCCESS);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena + 1 * MiB, 4 * KiB) == invalid);
  CHECK(pool.adopt(elsewhere + 1 * MiB, arena, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 64 * KiB, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.endLease(arena + 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.endLease(arena + 1 * MiB) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere + 1 * MiB) == CUDA_SUCCESS);
}

TEST_CASE("a session's host memory and the number of its pieces end at its limits, and what is given back counts no more") {
  Pool pool(limited(4 * MiB, 3, plenty));
  CHECK(pool.lease(arena, 5 * MiB) == full);
  CHECK(pool.lease(arena, 3 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 8 * MiB, 2 * MiB) == full);
  CHECK(pool.adopt(elsewhere, arena + 8 * MiB, 2 * MiB) == full);
  CHECK(pool.adopt(elsewhere, arena + 8 * MiB, 64 * KiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 16 * MiB, 4 * KiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 17 * MiB, 4 * KiB) == full);
  CHECK(pool.endLease(arena) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 17 * MiB, 3 * MiB) == CUDA_SUCCESS);
  CHECK(pool.release(elsewhere) == CUDA_SUCCESS);
}

TEST_CASE("what was leased and not touched yet is not promised twice") {
  Pool pool(limited(plenty, plenty, 4 * MiB));
  CHECK(pool.lease(arena, 5 * MiB) == full);
  CHECK(pool.lease(arena, 3 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 8 * MiB, 2 * MiB) == full);
  CHECK(pool.adopt(elsewhere, arena + 8 * MiB, 2 * MiB) == full);
  // The program touches it: now it is the machine that has so much less.
  pool.touch(0, 3 * MiB);
  CHECK(pool.lease(arena + 8 * MiB, 2 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 16 * MiB, 4 * MiB) == full);
  CHECK(pool.pool.registerAll() == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 16 * MiB, 4 * MiB) == CUDA_SUCCESS);
}

TEST_CASE("pages that are there already take nothing more, as those of a program that is resumed") {
  Pool pool(limited(plenty, plenty, 1 * MiB));
  pool.touch(0, 8 * MiB);
  pool.touch(16 * MiB, 4 * MiB);
  CHECK(pool.lease(arena, 8 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 15 * MiB, 5 * MiB) == CUDA_SUCCESS);
  CHECK(pool.lease(arena + 24 * MiB, 4 * KiB) == full);
}
