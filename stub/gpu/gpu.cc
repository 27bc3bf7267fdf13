#include "stub/gpu/gpu.h"

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

Gpu::Gpu(const Driver& driver, unsigned device)
    : driver(driver),
      device(device),
      context(driver, device),
      leases(driver, device),
      progress(driver, handles),
      digests(driver),
      folded(driver, context) {}

CUresult Gpu::query() {
  CUresult state = driver.cuStreamQuery(nullptr);
  for (auto& [handle, real] : handles.of(api::Kind::STREAM)) {
    if (state != CUDA_SUCCESS) break;
    state = driver.cuStreamQuery(fromWire<CUstream>(real));
  }
  return state;
}

uint64_t Gpu::busyFunction() {
  auto lastIn = [&](uint64_t stream, CUstream real) -> uint64_t {
    if (driver.cuStreamQuery(real) != CUDA_ERROR_NOT_READY) return 0;
    auto& last = launches[stream % launchPlaces];
    return last.stream == stream ? last.function : 0;
  };
  for (auto& [handle, real] : handles.of(api::Kind::STREAM))
    if (uint64_t function = lastIn(handle, fromWire<CUstream>(real)); function != 0) return function;
  return lastIn(0, nullptr);
}

}  // namespace vgpu::stub
