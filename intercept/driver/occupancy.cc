// Occupancy. Programs search for the best block size, so one frame requests the driver's reply for many sizes at once.
#include "intercept/driver/occupancy.h"

#include "intercept/session/entry.h"

namespace vgpu::client {

namespace {

KnownReplies::Question questionOf(const ResidentBlock& block) {
  return {api::Method::occupancyTable, {static_cast<uint32_t>(block.size), block.sharedBytes, block.flags}};
}

std::vector<ResidentBlock> unknownOf(const std::vector<ResidentBlock>& blocks, const KnownReplies& replies) {
  std::vector<ResidentBlock> unknown;
  for (auto& block : blocks)
    if (!replies.find(questionOf(block))) unknown.push_back(block);
  return unknown;
}

struct Told {
  CUresult result = CUDA_SUCCESS;
  int blocks = 0;
};

// Requests the replies for all of `blocks`, which have the same flags, in one frame, and keeps them. Returns the frame's result; `first`
// receives the reply for the first block.
CUresult ask(Thread& thread, CUfunction function, KnownReplies& replies, const std::vector<ResidentBlock>& blocks,
             Told& first) {
  if (blocks.empty()) return CUDA_SUCCESS;
  auto count = static_cast<unsigned>(blocks.size());
  uint64_t generation = replies.generation();
  Call<api::Cuda::OccupancyTableParams> frame(thread.of(toWire(function)), api::Method::occupancyTable, (count + 1) / 2 + count);
  frame->setFunction(toWire(function));
  frame->setFlags(blocks[0].flags);
  auto sizes = frame->initBlockSizes(count);
  auto shared = frame->initSharedBytes(count);
  for (unsigned i = 0; i < count; ++i) {
    sizes.set(i, blocks[i].size);
    shared.set(i, blocks[i].sharedBytes);
  }
  if (CUresult error = frame.call()) return error;
  auto reported = frame.results<api::Cuda::OccupancyTableResults>();
  for (unsigned i = 0; i < count; ++i)
    if (reported.getResults()[i] == CUDA_SUCCESS)
      replies.keep(generation, questionOf(blocks[i]), static_cast<uint32_t>(reported.getNumBlocks()[i]));
  first = {static_cast<CUresult>(reported.getResults()[0]), reported.getNumBlocks()[0]};
  return CUDA_SUCCESS;
}

// Block sizes to try: the largest allowed, then multiples of the warp size below it.
std::vector<int> triedSizes(const DeviceInfo& device, int largest) {
  int warp = std::max(1, device.attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE));
  std::vector<int> sizes;
  for (int size = largest; size > 0; size = size % warp != 0 ? size / warp * warp : size - warp) sizes.push_back(size);
  return sizes;
}

const DeviceInfo& deviceOf(Thread& thread, CUfunction function) {
  return thread.session.devices[handleDevice(toWire(function))];
}

FunctionLayout* findLayout(Thread& thread, CUfunction function) {
  auto* entry = thread.session.handles.find<api::Kind::FUNCTION>(toWire(function));
  return entry == nullptr ? nullptr : entry->layout.get();
}

}  // namespace

CUresult activeBlocks(Thread& thread, CUfunction function, const ResidentBlock& block, int& blocks) {
  FunctionLayout* layout = findLayout(thread, function);
  if (layout == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (auto known = layout->replies.find(questionOf(block))) {
    blocks = static_cast<int>(*known);
    return CUDA_SUCCESS;
  }
  std::vector<ResidentBlock> asked{block};
  for (int size : triedSizes(deviceOf(thread, function), static_cast<int>(layout->maxThreadsPerBlock)))
    if (size != block.size) asked.push_back({size, block.sharedBytes, block.flags});
  Told reported;
  if (CUresult error = ask(thread, function, layout->replies, asked, reported)) return error;
  if (reported.result == CUDA_SUCCESS) blocks = reported.blocks;
  return reported.result;
}

}  // namespace vgpu::client

using namespace vgpu;
using namespace vgpu::client;

extern "C" {

// The block size with the most resident threads; of equals the largest, as the driver chooses. The program's callback runs before anything
// is requested.
VGPU_EXPORT CUresult CUDAAPI cuOccupancyMaxPotentialBlockSize(int* minGridSize, int* blockSize, CUfunction func,
                                                              CUoccupancyB2DSize blockSizeToDynamicSMemSize,
                                                              size_t dynamicSMemSize, int blockSizeLimit) {
  return enter([&](Thread& thread) -> CUresult {
    if (minGridSize == nullptr || blockSize == nullptr) return CUDA_ERROR_INVALID_VALUE;
    uint64_t function = toWire(func);
    if (CUresult bad = thread.resolve(api::Kind::FUNCTION, false, function)) return bad;
    func = fromWire<CUfunction>(function);  // replaces a library's kernel by its function
    FunctionLayout* layout = findLayout(thread, func);
    if (layout == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    const DeviceInfo& device = deviceOf(thread, func);
    int limit = static_cast<int>(layout->maxThreadsPerBlock);
    if (blockSizeLimit > 0) limit = std::min(limit, blockSizeLimit);
    std::vector<ResidentBlock> tried;
    for (int size : triedSizes(device, limit))
      tried.push_back({size, blockSizeToDynamicSMemSize != nullptr ? blockSizeToDynamicSMemSize(size) : dynamicSMemSize, 0});
    Told first;
    if (CUresult error = ask(thread, func, layout->replies, unknownOf(tried, layout->replies), first)) return error;
    int bestThreads = 0, bestBlock = 0, bestBlocks = 0;
    for (auto& block : tried) {
      int blocks = 0;
      if (CUresult error = activeBlocks(thread, func, block, blocks)) return error;
      if (blocks * block.size <= bestThreads) continue;
      bestThreads = blocks * block.size;
      bestBlock = block.size;
      bestBlocks = blocks;
    }
    *blockSize = bestBlock;
    *minGridSize = bestBlocks * device.attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    return CUDA_SUCCESS;
  });
}

}  // extern "C"
