#include "stub/worker/kinds/kind.h"

#include "stub/worker/execution.h"

namespace vgpu::stub {

std::span<const KindModule* const> kinds() {
  static constexpr const KindModule* all[] = {
#define KIND_MODULE(module) &module,
#include "cuda-kind-modules.inc"
  };
  return all;
}

void readDevice(SessionState& session, unsigned device, uint64_t address, std::byte* out, size_t bytes) {
  auto& gpu = session.select(device).gpu;
  CUresult result = gpu.driver.cuMemcpyDtoHAsync_v2(out, address, bytes, gpu.progress.ownStream());
  require(gpu.driver, result, "copying the device's memory");
}

void writeDevice(SessionState& session, unsigned device, uint64_t address, const std::byte* in, size_t bytes) {
  auto& gpu = session.select(device).gpu;
  CUstream stream = gpu.progress.ownStream();
  CUresult result = in == nullptr ? gpu.driver.cuMemsetD8Async(address, 0, bytes, stream)
                                  : gpu.driver.cuMemcpyHtoDAsync_v2(address, in, bytes, stream);
  require(gpu.driver, result, "copying to the device's memory");
}

}  // namespace vgpu::stub
