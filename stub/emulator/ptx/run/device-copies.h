// Copies and fills requested by kernels. They are executed between two grids, as a child would be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {

// The rows of a box: row y of layer z begins at base + z * layerBytes + y * rowBytes.
struct BoxPlace {
  uint64_t base = 0, rowBytes = 0, layerBytes = 0;
};
struct BoxExtent {
  uint64_t width = 0, height = 1, depth = 1;  // in bytes, rows, layers
  bool empty() const { return width == 0 || height == 0 || depth == 0; }
};

struct DeviceCopy {
  BoxPlace to, from;
  BoxExtent extent;
};
struct DeviceFill {
  BoxPlace to;
  BoxExtent extent;
  uint8_t value = 0;
};

// Returns a fault if a byte is not mapped, or not writable. Everything before that byte is copied.
std::optional<Fault> execute(const DeviceCopy&, const Memory&);
std::optional<Fault> execute(const DeviceFill&, const Memory&);

}  // namespace vgpu::emulator
