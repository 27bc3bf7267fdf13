// Extensions for the worker. It maps large pieces of device memory and allocates parts of them to the program, so only it knows the
// program's allocations.
#include "stub/emulator/driver/driver.h"

using namespace vgpu::emulator::api;

#define VGPU_EXPORT extern "C" __attribute__((visibility("default")))

// From now on, kernels may access only noted bytes of the mapping that contains `address`. `owner` is named in reports; it may be null.
// Does nothing before cuInit.
VGPU_EXPORT void vgpuEmulatorNote(uint64_t address, uint64_t bytes, const char* owner) {
  enterDriver([&](Driver& driver) {
    if (bytes != 0 && address + bytes > address) driver.space.note(address, bytes, owner ? owner : "the program");
  });
}

// Forgets the allocation noted at `address`; accessing it is a fault from now on.
VGPU_EXPORT void vgpuEmulatorForget(uint64_t address) {
  enterDriver([&](Driver& driver) { driver.space.forget(address); });
}

// `place` returns the address for a new block of device addresses, or 0 to let the emulator choose; `release` is called when such a block
// is freed. Both are called with a lock of the address space held, so they must not call the driver.
VGPU_EXPORT void vgpuEmulatorPlaceBlocks(uint64_t (*place)(uint64_t bytes), void (*release)(uint64_t address, uint64_t bytes)) {
  placeBlocks({place, release});
}
