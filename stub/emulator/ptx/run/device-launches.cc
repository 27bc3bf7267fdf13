#include "stub/emulator/ptx/run/device-launches.h"

#include <algorithm>

namespace vgpu::emulator {
namespace {

// Handles that look like no address and differ from those with special meanings in CUDA.
constexpr uint64_t streamHandles = uint64_t{0x11} << windowShift, eventHandles = uint64_t{0x12} << windowShift;

// Increments `count` unless it is `most`.
bool addOne(std::atomic<uint64_t>& count, uint64_t most) {
  if (count.fetch_add(1, std::memory_order_relaxed) < most) return true;
  count.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

}  // namespace

uint64_t DeviceLaunches::newBuffer(ChildGrid child) {
  if (!addOne(waiting.all, mostWaitingWork)) return 0;
  const std::lock_guard lock(mutex);
  buffers.push_back({std::move(child)});
  return parameterBufferWindow | (buffers.size() - 1) * mostParameterBytes;
}

DeviceLaunches::Buffer* DeviceLaunches::bufferAt(uint64_t address) {
  const uint64_t number = offsetIn(address) / mostParameterBytes;
  if (windowOf(address) != parameterBufferWindow || number >= buffers.size() || buffers[number].launched) return nullptr;
  return &buffers[number];
}

std::optional<Memory::Region> DeviceLaunches::findBuffer(uint64_t address) {
  const std::lock_guard lock(mutex);
  Buffer* const found = bufferAt(address);
  if (!found) return std::nullopt;
  std::vector<std::byte>& bytes = found->child.parameters;
  return Memory::Region{address / mostParameterBytes * mostParameterBytes, bytes.size(), bytes.data(), true};
}

DeviceLaunches::Launched DeviceLaunches::launch(uint64_t address, Order order, uint64_t mostTails, const ChildGrid* as) {
  const std::lock_guard lock(mutex);
  Buffer* const buffer = bufferAt(address);
  if (!buffer || offsetIn(address) % mostParameterBytes != 0 || (!as && !buffer->child.kernel)) return Launched::noBuffer;
  if (order == Order::tail && !addOne(waiting.tails, mostTails)) return Launched::tooMany;
  ChildGrid& child = buffer->child;
  if (as) {
    child.kernel = as->kernel;
    child.shape = as->shape;
  }
  buffer->launched = true;
  listOf(order).push_back(std::move(child));  // the parameter bytes stay at their address
  return Launched::yes;
}

bool DeviceLaunches::add(DeviceWork added, Order order, uint64_t mostTails) {
  if (!addOne(waiting.all, mostWaitingWork)) return false;
  if (order == Order::tail && !addOne(waiting.tails, mostTails)) {
    waiting.all.fetch_sub(1, std::memory_order_relaxed);
    return false;
  }
  const std::lock_guard lock(mutex);
  listOf(order).push_back(std::move(added));
  return true;
}

uint64_t DeviceLaunches::newStream() {
  const std::lock_guard lock(mutex);
  return streamHandles | ++streams;
}

bool DeviceLaunches::isStream(uint64_t handle) {
  const std::lock_guard lock(mutex);
  return windowOf(handle) == streamHandles && offsetIn(handle) - 1 < streams;
}

uint64_t DeviceLaunches::newEvent(uint64_t mostEvents) {
  const std::lock_guard lock(mutex);
  if (events.size() >= mostEvents) return 0;
  return *events.insert(eventHandles | ++eventsMade).first;
}

bool DeviceLaunches::isEvent(uint64_t handle) {
  const std::lock_guard lock(mutex);
  return events.contains(handle);
}

bool DeviceLaunches::destroyEvent(uint64_t handle) {
  const std::lock_guard lock(mutex);
  return events.erase(handle) != 0;
}

DeviceLaunches::Work DeviceLaunches::take() {
  const std::lock_guard lock(mutex);
  const auto unused = std::ranges::count_if(buffers, [](const Buffer& buffer) { return !buffer.launched; });
  waiting.all.fetch_sub(static_cast<uint64_t>(unused), std::memory_order_relaxed);
  buffers.clear();
  return std::move(work);
}

}  // namespace vgpu::emulator
