// cuMemAlloc and similar entries: device memory at an address that the driver chooses.
#include "stub/emulator/driver/driver.h"

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  return enterContext([&](Context& context) {
    require(address != nullptr && bytes != 0);
    refuseDuringCapture(context.driver);
    *address = context.driver.pool(context.device).allocate(bytes, &context);
  });
}

CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height,
                                    unsigned elementBytes) {
  return enterContext([&](Context& context) {
    require(address != nullptr && pitch != nullptr && width != 0 && height != 0);
    refuseDuringCapture(context.driver);
    require(elementBytes == 4 || elementBytes == 8 || elementBytes == 16);
    constexpr uint64_t rowAlignment = 512;
    if (width > (uint64_t{1} << 40) || height > (uint64_t{1} << 20)) refuse(CUDA_ERROR_OUT_OF_MEMORY);
    *pitch = alignUp(width, rowAlignment);
    *address = context.driver.pool(context.device).allocate(*pitch * height, &context);
  });
}

CUresult CUDAAPI cuMemFree_v2(CUdeviceptr address) {
  return enterContext([&](Context& context) {
    if (address == 0) return;
    refuseDuringCapture(context.driver);
    Driver& driver = context.driver;
    std::optional<Mapping> mapping = driver.space.find(address);
    require(mapping && mapping->base == address && mapping->context);  // arrays have no context: they cannot be freed by this call
    require(mapping->kind == MappingKind::plain || mapping->kind == MappingKind::managed);
    // Freeing waits for work that may use the memory, as on hardware.
    mapping->context->streams.waitForAll();
    if (mapping->kind == MappingKind::plain) {
      driver.freePlain(driver.space.beginFree(address));
    } else {
      driver.space.unmap(address, MappingKind::managed, CUDA_ERROR_INVALID_VALUE);
    }
  });
}

CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  return enterContext([&](Context& context) {
    if (free) *free = context.device.freeBytes();
    if (total) *total = context.device.totalBytes();
  });
}

CUresult CUDAAPI cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return enterContext([&](Context& context) {
    std::optional<Mapping> mapping = context.driver.space.find(address);
    if (!mapping) refuse(CUDA_ERROR_NOT_FOUND);
    if (base) *base = mapping->base;
    if (bytes) *bytes = mapping->bytes;
  });
}
