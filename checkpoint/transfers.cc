#include "checkpoint/transfers.h"

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

Transfers::~Transfers() {
  for (auto& [device, of] : devices) {
    auto& driver = on.select(device).driver;
    driver.cuStreamSynchronize(on.of(device).gpu.progress.ownStream());
    for (CUevent event : of.events)
      if (event != nullptr) driver.cuEventDestroy_v2(event);
  }
}

void Transfers::mark(size_t slot, unsigned device) {
  auto& of = devices[device];
  of.events.resize(slots);
  CUevent& event = of.events[slot];
  if (event == nullptr) stub::require(on.driver, on.driver.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "creating an event");
  stub::require(on.driver, on.driver.cuEventRecord(event, on.of(device).gpu.progress.ownStream()), "recording an event");
  pending[slot] = event;
}

void Transfers::await(size_t slot) {
  if (CUevent event = std::exchange(pending[slot], nullptr))
    stub::require(on.driver, on.driver.cuEventSynchronize(event), "copying the device's memory");
}

}  // namespace vgpu::checkpoint
