#include "stub/driver/gap-filler.h"

#include "stub/driver/driver-addresses.h"

namespace vgpu::stub {

std::timed_mutex GapFiller::one;

// By the system's clock: of a wait by the steady one, pthread_mutex_clocklock(), thread sanitizer of GCC 12 does not know.
GapFiller::GapFiller(const Driver& driver) : alone(one, std::chrono::system_clock::now() + patience), driver(driver) {
  if (!DriverAddresses::ofProcess().areAsked()) return;
  while (reserved.size() < most) {
    uint64_t before = DriverAddresses::mappings();
    CUdeviceptr piece = 0;
    if (driver.cuMemAddressReserve(&piece, leaseGranularity, 0, 0, 0) != CUDA_SUCCESS) return;
    if (DriverAddresses::mappings() != before) {  // none was left
      driver.cuMemAddressFree(piece, leaseGranularity);
      return;
    }
    reserved.push_back(piece);
  }
}

GapFiller::~GapFiller() {
  for (CUdeviceptr piece : reserved) driver.cuMemAddressFree(piece, leaseGranularity);
}

}  // namespace vgpu::stub
