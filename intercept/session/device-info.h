// The properties of a device, reported once by the worker. The virtual GPU keeps them on whatever node it is resumed. For features of the
// real GPU that a session lacks, the session's value is reported (device-info.cc).
#pragma once

#include <cuda.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "intercept/session/launch-shape.h"

namespace vgpu::client {

// Where a device is on the PCI bus.
struct BusPlace {
  unsigned domain = 0, bus = 0, device = 0, function = 0;
  bool operator==(const BusPlace&) const = default;

  // Reads domain:bus:device.function, domain:bus:device or bus:device.function, in hexadecimal (cuda.h, cuDeviceGetByPCIBusId). Nothing if
  // `text` has none of these forms.
  static std::optional<BusPlace> of(const char* text);
};

struct DeviceInfo {
  std::string name, pciBusId;
  CUuuid uuid{};
  uint64_t totalBytes = 0;
  std::vector<int> attributes;  // by CUdevice_attribute
  int leastPriority = 0, greatestPriority = 0;

  // Facts about each device of the session as a peer, by device: whether this device can access it, then by CUdevice_P2PAttribute.
  static constexpr size_t peerFacts = 1 + CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;
  std::vector<std::array<int, peerFacts>> peers;

  bool canAccess(unsigned device) const { return device < peers.size() && peers[device][0] != 0; }

  int attribute(CUdevice_attribute which) const {
    auto index = static_cast<size_t>(which);
    return index < attributes.size() ? attributes[index] : 0;
  }
  // Whether host and devices may access managed memory concurrently; otherwise managed memory is pinned memory.
  bool sharesManaged() const { return attribute(CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS) != 0; }

  // Whether it supports grids and blocks of that size.
  bool allows(const LaunchShape& shape) const {
    auto within = [&](unsigned value, CUdevice_attribute limit) { return value != 0 && value <= static_cast<unsigned>(attribute(limit)); };
    return within(shape.gridX, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X) && within(shape.gridY, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y) &&
           within(shape.gridZ, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z) && within(shape.blockX, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X) &&
           within(shape.blockY, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y) && within(shape.blockZ, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z);
  }

  // Replaces the GPU's attributes by those that a session supports. `mapsHost`: whether the session has physical host memory.
  void limitToSession(bool mapsHost);
};

// Whether all devices can access each other's memory.
bool areAllPeers(const std::vector<DeviceInfo>& devices);

}  // namespace vgpu::client
