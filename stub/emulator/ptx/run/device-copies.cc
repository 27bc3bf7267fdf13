#include "stub/emulator/ptx/run/device-copies.h"

#include <algorithm>
#include <cstring>

#include "stub/emulator/ptx/run/hex.h"

namespace vgpu::emulator {
namespace {

// Device memory from an address to the end of its region; no bytes if it is not mapped, or not writable as required.
struct Place {
  uint64_t address;
  bool write;
  std::byte* host = nullptr;
  uint64_t bytes = 0;
};

Place placeAt(const Memory& memory, uint64_t address, bool write) {
  const auto region = memory.find(address);
  if (!region || (write && !region->writable)) return {address, write};
  const uint64_t before = address - region->base;
  return {address, write, region->host + before, region->bytes - before};
}

Fault faultAt(const Place& place, const char* what, const Memory& memory) {
  return {Fault::Kind::illegalAddress, std::string(what) + " by a kernel: an illegal " +
                                           (place.write ? "write to " : "read from ") + hex(place.address) + ": " +
                                           memory.describe(place.address)};
}

// Calls row(offset in layers, offset in rows) until a call returns a fault.
template <class Row>
std::optional<Fault> forRows(const BoxExtent& extent, Row row) {
  for (uint64_t z = 0; z < extent.depth; ++z)
    for (uint64_t y = 0; y < extent.height; ++y)
      if (std::optional<Fault> fault = row(z, y)) return fault;
  return std::nullopt;
}

uint64_t rowOf(const BoxPlace& place, uint64_t z, uint64_t y) { return place.base + z * place.layerBytes + y * place.rowBytes; }

}  // namespace

std::optional<Fault> execute(const DeviceCopy& copy, const Memory& memory) {
  return forRows(copy.extent, [&](uint64_t z, uint64_t y) -> std::optional<Fault> {
    const uint64_t to = rowOf(copy.to, z, y), from = rowOf(copy.from, z, y);
    for (uint64_t done = 0; done < copy.extent.width;) {
      const Place source = placeAt(memory, from + done, false), target = placeAt(memory, to + done, true);
      if (source.bytes == 0) return faultAt(source, "a copy", memory);
      if (target.bytes == 0) return faultAt(target, "a copy", memory);
      const uint64_t bytes = std::min({copy.extent.width - done, source.bytes, target.bytes});
      std::memmove(target.host, source.host, bytes);
      done += bytes;
    }
    return std::nullopt;
  });
}

std::optional<Fault> execute(const DeviceFill& fill, const Memory& memory) {
  return forRows(fill.extent, [&](uint64_t z, uint64_t y) -> std::optional<Fault> {
    const uint64_t to = rowOf(fill.to, z, y);
    for (uint64_t done = 0; done < fill.extent.width;) {
      const Place target = placeAt(memory, to + done, true);
      if (target.bytes == 0) return faultAt(target, "a fill", memory);
      const uint64_t bytes = std::min(fill.extent.width - done, target.bytes);
      std::memset(target.host, fill.value, bytes);
      done += bytes;
    }
    return std::nullopt;
  });
}

}  // namespace vgpu::emulator
