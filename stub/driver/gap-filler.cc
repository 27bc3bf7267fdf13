#include "stub/driver/gap-filler.h"

#include "stub/driver/driver-addresses.h"

namespace vgpu::stub {

std::timed_mutex GapFiller::one;

// A deadline of the system clock: a wait by the steady clock uses pthread_mutex_clocklock(), which the thread sanitizer of GCC 12 does not
// know.
GapFiller::GapFiller(const Driver& driver) : alone(one, std::chrono::system_clock::now() + patience), driver(driver) {
  reserveFree();
}

void GapFiller::reserveFree() {
  if (!DriverAddresses::ofProcess().areAsked()) return;
  for (uint64_t bytes = driverBlockBytes / 2; bytes >= leaseGranularity; bytes /= 2)
    while (reserveOne(bytes)) {
    }
}

// False if no free piece is that large.
bool GapFiller::reserveOne(uint64_t bytes) {
  if (reservedBytes >= mostBytes) return false;
  uint64_t before = DriverAddresses::mappings();
  CUdeviceptr piece = 0;
  if (driver.cuMemAddressReserve(&piece, bytes, 0, 0, 0) != CUDA_SUCCESS) return false;
  const bool wasFree = DriverAddresses::mappings() == before;
  if (!wasFree) {
    driver.cuMemAddressFree(piece, bytes);
    return false;
  }
  reserved.push_back({piece, bytes});
  reservedBytes += bytes;
  return true;
}

GapFiller::~GapFiller() {
  for (auto& [piece, bytes] : reserved) driver.cuMemAddressFree(piece, bytes);
}

}  // namespace vgpu::stub
