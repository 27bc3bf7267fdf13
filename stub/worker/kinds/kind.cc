#include "stub/worker/kinds/kind.h"

#include <array>

#include "stub/worker/execution.h"

namespace vgpu::stub {

std::span<const KindModule* const> kinds() {
  static constexpr std::array<const KindModule*, 6> all{&memoryKind, &moduleKind, &arrayKind, &textureKind, &streamKind,
                                                        &eventKind};
  return all;
}

void readDevice(Execution& on, unsigned device, uint64_t address, std::byte* out, size_t bytes) {
  on.select(device);
  require(on.driver, on.driver.cuMemcpyDtoH_v2(out, address, bytes), "copying the device's memory");
}

void writeDevice(Execution& on, unsigned device, uint64_t address, const std::byte* in, size_t bytes) {
  on.select(device);
  CUresult result = in == nullptr ? on.driver.cuMemsetD8Async(address, 0, bytes, nullptr)
                                  : on.driver.cuMemcpyHtoD_v2(address, in, bytes);
  require(on.driver, result, "copying to the device's memory");
}

}  // namespace vgpu::stub
