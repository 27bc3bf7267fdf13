// Copies and fills that kernels ask for. Such a one is executed between two grids, as a child would be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "stub/emulator/ptx/run/interpreter.h"

namespace vgpu::emulator {

// Where the rows of a box lie: row y of layer z begins at base + z * layerBytes + y * rowBytes.
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

// The fault if a byte of it is not mapped, or may not be written. What comes before that byte is copied.
std::optional<Fault> execute(const DeviceCopy&, const Memory&);
std::optional<Fault> execute(const DeviceFill&, const Memory&);

}  // namespace vgpu::emulator
