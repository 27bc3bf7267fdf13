// Handles of graphs and nodes that kernels use. They are addresses in a block of the driver's, in which no memory of programs lies and
// which the host cannot read. Assigned as by an H100's driver (580.159): the first at a fixed address, further ones after it; but freed
// handles are reused before, those of graphs last freed first, those of nodes first freed first. So a process that creates and destroys the
// same objects in the same order gets the same handles.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

namespace vgpu::emulator::api {

class DeviceNode;

constexpr uint64_t deviceGraphBlock = 0x3f0000000000, deviceNodeBlock = 0x3f8000000000;

class BlockHandles {
 public:
  enum class Again { lastFirst, firstFirst };
  BlockHandles(uint64_t block, uint64_t offset, uint64_t bytes, Again again)
      : block(block), bytes(bytes), again(again), next(block + offset) {}
  uint64_t take() {
    std::lock_guard lock(mutex);
    if (free.empty()) return std::exchange(next, next + bytes);
    const uint64_t handle = again == Again::lastFirst ? free.back() : free.front();
    again == Again::lastFirst ? free.pop_back() : free.pop_front();
    return handle;
  }
  void give(uint64_t handle) {
    std::lock_guard lock(mutex);
    free.push_back(handle);
  }
  // Whether the address lies in the present part of the block, which grows by pieces.
  bool hold(uint64_t address) const {
    constexpr uint64_t pieceBytes = uint64_t{2} << 20;
    std::lock_guard lock(mutex);
    return address - block < (next - block) / pieceBytes * pieceBytes + pieceBytes;
  }

 private:
  const uint64_t block, bytes;
  const Again again;
  mutable std::mutex mutex;
  uint64_t next;
  std::deque<uint64_t> free;
};

class DeviceNodes {
 public:
  std::shared_ptr<DeviceNode> make();
  std::shared_ptr<DeviceNode> find(uint64_t handle) const;  // nullptr if there is no such node
  bool hold(uint64_t address) const { return handles.hold(address); }

 private:
  friend class DeviceNode;
  BlockHandles handles{deviceNodeBlock, 0, 256, BlockHandles::Again::firstFirst};
  mutable std::mutex mutex;
  std::map<uint64_t, std::weak_ptr<DeviceNode>> nodes;
};

}  // namespace vgpu::emulator::api
