// What the worker says about addresses. About the program's allocations: it maps large pieces of device memory and hands out parts of
// them, so only it knows what is allocated where.
#include "stub/emulator/driver/driver.h"

using namespace vgpu::emulator::api;

#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

// From here on, kernels may touch no other byte of the mapping around `address` than noted ones. `owner` is named in
// reports; it may be null. Does nothing before cuInit.
VGPU_EXPORT void vgpuEmulatorNote(uint64_t address, uint64_t bytes, const char* owner) {
  enterDriver([&](Driver& driver) {
    if (bytes != 0 && address + bytes > address) driver.space.note(address, bytes, owner ? owner : "the program");
  });
}

// The allocation that was noted at `address` is gone; touching it is a fault from here on.
VGPU_EXPORT void vgpuEmulatorForget(uint64_t address) {
  enterDriver([&](Driver& driver) { driver.space.forget(address); });
}

// `place` answers where a new block of addresses for device memory lies, 0 for a place of ours, and `release` is told of one that is
// gone. They are called with a lock of the address space held: they must call nothing of the driver.
VGPU_EXPORT void vgpuEmulatorPlaceBlocks(uint64_t (*place)(uint64_t bytes), void (*release)(uint64_t address, uint64_t bytes)) {
  placeBlocks({place, release});
}
