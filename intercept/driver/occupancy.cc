// Occupancy that the driver computes by calling the program back: a search over block sizes, done here.
#include "intercept/session/entry.h"

using namespace vgpu;

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuOccupancyMaxActiveBlocksPerMultiprocessor(int* numBlocks, CUfunction func, int blockSize,
                                                                         size_t dynamicSMemSize) {
  return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0);
}

// The block size with the most resident threads; the largest of equals, as the driver chooses.
VGPU_EXPORT CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                              size_t dynamicSMemSize, int blockSizeLimit) {
  return enter([&](Thread& thread) -> CUresult {
    if (minGridSize == nullptr || blockSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
    ObjectEntry* entry = thread.session.handles.find(api::Kind::FUNCTION, toWire(func));
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto& device = thread.session.devices[thread.device()];
    int warp = std::max(1, device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
    int limit = static_cast<int>(entry->function->maxThreadsPerBlock);
    if (blockSizeLimit > 0) limit = std::min(limit, blockSizeLimit);
    int bestThreads = 0, bestBlock = 0, bestBlocks = 0;
    for (int size = limit; size > 0; size = size % warp != 0 ? size / warp * warp : size - warp) {
      size_t shared = blockSizeToDynamicSMemSize != nullptr ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize;
      int blocks = 0;
      if (CUresult error = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, func, size, shared, 0)) return error;
      if (blocks * size <= bestThreads) continue;
      bestThreads = blocks * size;
      bestBlock = size;
      bestBlocks = blocks;
    }
    *blockSize = bestBlock;
    *minGridSize = bestBlocks * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
