// Handles of graphs and nodes that kernels use. They are addresses in a block of the driver's, which holds no memory of programs and
// which the host cannot read. As an H100's driver (580.159) gives them out: the first at a fixed place, the next ones behind each
// other, and what was given back last first. So a process that makes and ends the same in the same order has the same handles.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

namespace vgpu::emulator::api {

class DeviceNode;

constexpr uint64_t deviceGraphBlock = 0x3f0000000000, deviceGraphBlockBytes = uint64_t{1} << 40;

class BlockHandles {
 public:
  BlockHandles(uint64_t first, uint64_t bytes) : first(first), bytes(bytes), next(first) {}
  uint64_t take() {
    std::lock_guard lock(mutex);
    if (free.empty()) return std::exchange(next, next + bytes);
    const uint64_t handle = free.back();
    free.pop_back();
    return handle;
  }
  void give(uint64_t handle) {
    std::lock_guard lock(mutex);
    free.push_back(handle);
  }
  // Whether the address lies in what has been given out until now, ended or not.
  bool hold(uint64_t address) const {
    std::lock_guard lock(mutex);
    return address - first < next - first;
  }

 private:
  const uint64_t first, bytes;
  mutable std::mutex mutex;
  uint64_t next;
  std::vector<uint64_t> free;
};

class DeviceNodes {
 public:
  std::shared_ptr<DeviceNode> make();
  std::shared_ptr<DeviceNode> find(uint64_t handle) const;  // nullptr if there is none
  bool hold(uint64_t address) const { return handles.hold(address); }

 private:
  friend class DeviceNode;
  BlockHandles handles{deviceGraphBlock + (deviceGraphBlockBytes >> 1), 256};
  mutable std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<DeviceNode>> nodes;
};

}  // namespace vgpu::emulator::api
