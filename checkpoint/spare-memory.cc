#include "checkpoint/spare-memory.h"

namespace vgpu::checkpoint {

namespace {

// The divisor of a GPU's memory that gives the part left free for the programs on it.
constexpr uint64_t partLeft = 16;

}  // namespace

SpareMemory::~SpareMemory() {
  if (begin == 0) return;
  context.select();
  if (own != nullptr) driver.cuStreamDestroy_v2(own);
  for (size_t i = 0; i < blocks.size(); ++i) {
    driver.cuMemUnmap(begin + i * blockBytes, blockBytes);
    driver.cuMemRelease(blocks[i]);
  }
  driver.cuMemAddressFree(begin, bytesOfDevice);
}

CUdeviceptr SpareMemory::take(size_t bytes) {
  const uint64_t at = roundUp(used, allocationAlignment);
  while (!isFull && at + bytes > blocks.size() * blockBytes) isFull = !grow();
  if (at + bytes > blocks.size() * blockBytes) return 0;
  used = at + bytes;
  return begin + at;
}

bool SpareMemory::reserve() {
  if (begin != 0) return true;
  const CUdeviceptr wanted = base + device * bytesOfDevice;
  if (context.take() != CUDA_SUCCESS || driver.cuMemAddressReserve(&begin, bytesOfDevice, 0, wanted, 0) != CUDA_SUCCESS) {
    begin = 0;
    return false;
  }
  if (begin == wanted) return true;
  driver.cuMemAddressFree(begin, bytesOfDevice);
  begin = 0;
  return false;
}

bool SpareMemory::grow() {
  size_t free = 0, total = 0;
  if (driver.cuMemGetInfo_v2(&free, &total) != CUDA_SUCCESS || free < total / partLeft + blockBytes) return false;
  const uint64_t mapped = blocks.size() * blockBytes;
  if (mapped + blockBytes > bytesOfDevice || !reserve()) return false;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, driver.device(device)};
  CUmemGenericAllocationHandle block;
  if (driver.cuMemCreate(&block, blockBytes, &properties, 0) != CUDA_SUCCESS) return false;
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  bool isMapped = driver.cuMemMap(begin + mapped, blockBytes, 0, block, 0) == CUDA_SUCCESS;
  if (isMapped && driver.cuMemSetAccess(begin + mapped, blockBytes, &access, 1) == CUDA_SUCCESS) {
    blocks.push_back(block);
    return true;
  }
  if (isMapped) driver.cuMemUnmap(begin + mapped, blockBytes);
  driver.cuMemRelease(block);
  return false;
}

void SpareMemory::select() const { stub::require(driver, context.select(), "changing device"); }

CUstream SpareMemory::stream() {
  if (own == nullptr) stub::require(driver, driver.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING), "making a stream");
  return own;
}

}  // namespace vgpu::checkpoint
