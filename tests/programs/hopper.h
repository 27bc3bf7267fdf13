// Instructions of compute capability 9.0a without CUDA C++ intrinsics: barriers that count bytes, bulk copies, warpgroup products.
#pragma once

#include <cuda.h>

#include <cstdint>

#include "program.h"

__device__ inline uint32_t sharedAddress(const void* pointer) { return static_cast<uint32_t>(__cvta_generic_to_shared(pointer)); }

// ---- barriers in shared memory
__device__ inline void initBarrier(uint64_t* barrier, unsigned arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(sharedAddress(barrier)), "r"(arrivals) : "memory");
}
__device__ inline void arrive(uint64_t* barrier) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.shared::cta.b64 state, [%0]; }" ::"r"(sharedAddress(barrier)) : "memory");
}
__device__ inline void arriveExpecting(uint64_t* barrier, unsigned bytes) {
  asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1; }" ::"r"(sharedAddress(barrier)),
               "r"(bytes)
               : "memory");
}
__device__ inline void waitFor(uint64_t* barrier, unsigned parity) {
  unsigned done = 0;
  while (!done)
    asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                 : "=r"(done)
                 : "r"(sharedAddress(barrier)), "r"(parity)
                 : "memory");
}
// Makes initialized barriers, and written shared memory, visible to later copies.
__device__ inline void publishBarriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }
__device__ inline void publishShared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// ---- copies
__device__ inline void commitCopies() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void waitForCopies() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
__device__ inline void loadTensor2d(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
          sharedAddress(to)),
      "l"(map), "r"(x), "r"(y), "r"(sharedAddress(barrier))
      : "memory");
}
__device__ inline void storeTensor2d(const CUtensorMap* map, int x, int y, const void* from) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(x), "r"(y),
               "r"(sharedAddress(from))
               : "memory");
}

// ---- warpgroup products
__device__ inline void beginProducts() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void waitForProducts() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
enum class Span : uint64_t { none = 0, bytes128 = 1, bytes64 = 2, bytes32 = 3 };  // the span within which 16-byte units are permuted
// Descriptor of an operand in shared memory: `leading` and `stride` are the distances between its core matrices in bytes.
__device__ inline uint64_t describe(const void* matrix, unsigned leading, unsigned stride, Span span) {
  return static_cast<uint64_t>((sharedAddress(matrix) & 0x3ffff) >> 4) | static_cast<uint64_t>(leading >> 4) << 16 |
         static_cast<uint64_t>(stride >> 4) << 32 | static_cast<uint64_t>(span) << 62;
}

// Whether the current device can run this program's code, which is only for 9.0a.
inline bool isHopper() {
  int major = 0, minor = 0;
  CHECK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  CHECK(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, 0));
  return major == 9 && minor == 0;
}

// A driver entry, looked up as by a program that is linked only with the runtime.
template <typename Entry>
Entry driverEntry(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found{};
  CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 12000, cudaEnableDefault, &found));
  if (found != cudaDriverEntryPointSuccess) {
    std::fprintf(stderr, "the driver has no %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Entry>(entry);
}
