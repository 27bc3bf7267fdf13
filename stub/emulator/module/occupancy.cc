// How many blocks fit on a multiprocessor: NVIDIA's occupancy calculation with the reported attributes.
#include <algorithm>
#include <limits>
#include <span>

#include "stub/emulator/driver/driver.h"
#include "stub/emulator/stream/launch.h"

namespace vgpu::emulator::api {
namespace {

// Registers are allocated to warps in units of 256, shared memory to blocks in units of 128 bytes, warps to a multiprocessor's four
// schedulers (CUDA occupancy calculator, compute capability 7.5 to 12.x).
constexpr uint32_t warpThreads = 32, registerUnit = 256, sharedUnit = 128, schedulers = 4;

struct Limits {
  uint32_t threads, blocks, registers, sharedBytes, reservedSharedBytes;
};

Limits limitsOf(const Device& device) {
  auto figure = [&](CUdevice_attribute attribute) { return static_cast<uint32_t>(device.attribute(attribute)); };
  return {figure(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR),
          figure(CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR),
          figure(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR),
          figure(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR),
          figure(CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)};
}

// The number of blocks, limited by everything but shared memory.
uint32_t blocksByThreads(const Limits& limits, const KernelAttributes& kernel, uint32_t blockThreads) {
  uint32_t warps = (blockThreads + warpThreads - 1) / warpThreads;
  uint32_t byWarps = limits.threads / warpThreads / warps;
  uint32_t warpRegisters = static_cast<uint32_t>(alignUp(uint64_t{kernel.registers} * warpThreads, registerUnit));
  uint32_t byRegisters = std::numeric_limits<uint32_t>::max();
  if (warpRegisters != 0) byRegisters = limits.registers / schedulers / warpRegisters * schedulers / warps;
  return std::min({limits.blocks, byWarps, byRegisters});
}

uint64_t sharedOfBlock(const Limits& limits, const KernelAttributes& kernel, uint64_t dynamicBytes) {
  return alignUp(uint64_t{kernel.staticSharedBytes} + dynamicBytes + limits.reservedSharedBytes, sharedUnit);
}

}  // namespace

int residentBlocks(Function& function, uint32_t blockThreads, uint64_t dynamicSharedBytes) {
  Limits limits = limitsOf(function.context.device);
  KernelAttributes kernel = attributesOf(function.kernel());
  // As in cuda_occupancy.h: more than the kernel's limit fits nowhere. The driver treats sizes as signed: ~0 is negative.
  const auto asked = static_cast<int64_t>(dynamicSharedBytes);
  if (blockThreads > kernel.maxThreadsPerBlock || asked > static_cast<int64_t>(function.dynamicSharedLimit())) return 0;
  uint64_t shared = sharedOfBlock(limits, kernel, dynamicSharedBytes);
  uint64_t byShared = shared == 0 ? limits.blocks : limits.sharedBytes / shared;
  return static_cast<int>(std::min<uint64_t>(blocksByThreads(limits, kernel, blockThreads), byShared));
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator;
using namespace vgpu::emulator::api;

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction handle, int blockThreads,
                                                                      size_t dynamicSharedBytes, unsigned flags) {
  return enterContext([&](Context& context) {
    require(blocks != nullptr && blockThreads > 0 && (flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) == 0);
    *blocks = residentBlocks(*functionFor(context, handle), static_cast<uint32_t>(blockThreads), dynamicSharedBytes);
  });
}

CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction handle, int blockThreads,
                                                             size_t dynamicSharedBytes) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, handle, blockThreads, dynamicSharedBytes,
                                                              CU_OCCUPANCY_DEFAULT);
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSizeWithFlags(int* leastGrid, int* bestBlock, CUfunction handle,
                                                           CUoccupancyB2DSize dynamicSharedOf,
                                                           size_t dynamicSharedBytes, int mostBlockThreads,
                                                           unsigned flags) {
  return enterContext([&](Context& context) {
    require(leastGrid != nullptr && bestBlock != nullptr && mostBlockThreads >= 0);
    require((flags & ~unsigned{CU_OCCUPANCY_DISABLE_CACHING_OVERRIDE}) == 0);
    std::shared_ptr<Function> function = functionFor(context, handle);
    auto most = static_cast<int>(attributesOf(function->kernel()).maxThreadsPerBlock);
    if (mostBlockThreads > 0) most = std::min(most, mostBlockThreads);
    int processors = context.device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT), bestThreads = 0;
    *leastGrid = *bestBlock = 0;
    // Finds the largest block size among those that keep the most threads resident.
    for (int threads = (most + 31) / 32 * 32; threads > 0; threads -= 32) {
      int block = std::min(threads, most);
      size_t shared = dynamicSharedOf ? dynamicSharedOf(block) : dynamicSharedBytes;
      int blocks = residentBlocks(*function, static_cast<uint32_t>(block), shared);
      if (blocks * block <= bestThreads) continue;
      bestThreads = blocks * block;
      *bestBlock = block;
      *leastGrid = blocks * processors;
    }
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* leastGrid, int* bestBlock, CUfunction handle,
                                                  CUoccupancyB2DSize dynamicSharedOf, size_t dynamicSharedBytes,
                                                  int mostBlockThreads) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(leastGrid, bestBlock, handle, dynamicSharedOf, dynamicSharedBytes,
                                                   mostBlockThreads, CU_OCCUPANCY_DEFAULT);
}

CUresult CUDAAPI cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction handle, int blocks,
                                                         int blockThreads) {
  return enterContext([&](Context& context) {
    require(bytes != nullptr && blocks > 0 && blockThreads > 0);
    std::shared_ptr<Function> function = functionFor(context, handle);
    Limits limits = limitsOf(context.device);
    KernelAttributes kernel = attributesOf(function->kernel());
    if (static_cast<uint32_t>(blocks) > blocksByThreads(limits, kernel, static_cast<uint32_t>(blockThreads))) {
      refuse(CUDA_ERROR_INVALID_VALUE);
    }
    uint64_t each = limits.sharedBytes / static_cast<uint32_t>(blocks) / sharedUnit * sharedUnit;
    uint64_t fixed = kernel.staticSharedBytes;  // the system's reserved part is not subtracted, as in the driver
    *bytes = each > fixed ? std::min<uint64_t>(each - fixed, function->dynamicSharedLimit()) : 0;
  });
}

namespace {

// The number of blocks that run at once on the device, for a launch with attributes.
int blocksAtOnce(Context& context, Function& function, const CUlaunchConfig& config) {
  const uint64_t threads = blocksOf({config.blockDimX, config.blockDimY, config.blockDimZ});
  require(threads != 0 && threads <= attributesOf(function.kernel()).maxThreadsPerBlock);
  return residentBlocks(function, static_cast<uint32_t>(threads), config.sharedMemBytes) *
         context.device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
}

}  // namespace

CUresult CUDAAPI cuOccupancyMaxActiveClusters(int* clusters, CUfunction handle, const CUlaunchConfig* config) {
  return enterContext([&](Context& context) {
    require(clusters != nullptr && config != nullptr);
    std::shared_ptr<Function> function = functionFor(context, handle);
    require(config->numAttrs == 0 || config->attrs != nullptr);
    LaunchRequest asked;
    for (const CUlaunchAttribute& each : std::span(config->attrs, config->numAttrs)) applyAttribute(each.id, each.value, asked);
    const uint64_t blocks = blocksOf(clusterOf(*function, asked.cluster));
    if (blocks > function->mostClusterBlocks()) refuse(CUDA_ERROR_INVALID_CLUSTER_SIZE);
    *clusters = blocksAtOnce(context, *function, *config) / static_cast<int>(blocks);
  });
}

CUresult CUDAAPI cuOccupancyMaxPotentialClusterSize(int* size, CUfunction handle, const CUlaunchConfig* config) {
  return enterContext([&](Context& context) {
    require(size != nullptr && config != nullptr);
    std::shared_ptr<Function> function = functionFor(context, handle);
    *size = std::min(static_cast<int>(function->mostClusterBlocks()), blocksAtOnce(context, *function, *config));
  });
}
