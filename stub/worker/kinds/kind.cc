#include "stub/worker/kinds/kind.h"

#include <array>

#include "stub/worker/execution.h"

namespace vgpu::stub {

std::span<const KindModule* const> kinds() {
  static constexpr std::array<const KindModule*, 8> all{&memoryKind, &moduleBlockKind, &moduleGroupKind, &moduleKind,
                                                        &arrayKind,  &textureKind,     &eventKind,       &libraryKind};
  return all;
}

void readDevice(SessionState& session, unsigned device, uint64_t address, std::byte* out, size_t bytes) {
  auto& driver = session.select(device).driver;
  require(driver, driver.cuMemcpyDtoH_v2(out, address, bytes), "copying the device's memory");
}

void writeDevice(SessionState& session, unsigned device, uint64_t address, const std::byte* in, size_t bytes) {
  auto& driver = session.select(device).driver;
  CUresult result = in == nullptr ? driver.cuMemsetD8Async(address, 0, bytes, nullptr)
                                  : driver.cuMemcpyHtoD_v2(address, in, bytes);
  require(driver, result, "copying to the device's memory");
}

}  // namespace vgpu::stub
