// Calls that only give hints: where managed memory should be, when a profiler should run. They are checked and accepted.
#include <cstring>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {
namespace {

void requireManaged(Context& context, CUdeviceptr address, size_t bytes) {
  std::optional<Mapping> mapping = context.driver.space.find(address);
  require(bytes != 0 && mapping && mapping->kind == MappingKind::managed);
  require(bytes <= mapping->bytes - (address - mapping->base));
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice, CUmemLocation) {
  return enterContext([&](Context& context) {
    require(advice >= CU_MEM_ADVISE_SET_READ_MOSTLY && advice <= CU_MEM_ADVISE_UNSET_ACCESSED_BY);
    requireManaged(context, address, bytes);
  });
}

CUresult CUDAAPI cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                                       CUstream stream) {
  return enterContext([&](Context& context) {
    require(flags == 0);
    requireManaged(context, address, bytes);
    if (location.type == CU_MEM_LOCATION_TYPE_DEVICE) context.driver.device(location.id);
    streamOf(context, stream)->submit({.weight = Weight::light});
  });
}

CUresult CUDAAPI cuMemRangeGetAttribute(void* data, size_t dataBytes, CUmem_range_attribute attribute,
                                        CUdeviceptr address, size_t bytes) {
  return enterContext([&](Context& context) {
    require(data != nullptr);
    requireManaged(context, address, bytes);
    bool location = attribute == CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION ||
                    attribute == CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION;
    require(dataBytes != 0 && dataBytes % sizeof(int) == 0);
    // Advice is not stored: nothing is read-mostly or has a preferred location.
    int answer = location ? int{CU_DEVICE_INVALID} : 0;
    if (attribute == CU_MEM_RANGE_ATTRIBUTE_ACCESSED_BY) answer = CU_DEVICE_INVALID;
    for (size_t i = 0; i < dataBytes / sizeof(int); ++i) {
      std::memcpy(static_cast<char*>(data) + i * sizeof(int), &answer, sizeof(int));
    }
  });
}

CUresult CUDAAPI cuProfilerStart() {
  return enterContext([](Context&) {});
}

CUresult CUDAAPI cuProfilerStop() {
  return enterContext([](Context&) {});
}
