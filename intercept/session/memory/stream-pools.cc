#include "intercept/session/memory/stream-pools.h"

#include <algorithm>
#include <bit>

#include "intercept/session/call.h"
#include "intercept/session/ring-order.h"
#include "intercept/session/wait.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

namespace {

// CUDA's pools take memory in pieces of this size.
constexpr uint64_t poolPiece = 32 * MiB;
// Not an address, and nothing that another handle could be.
constexpr uint64_t firstHandle = uint64_t{0x706f'6f6c} << 16;

}  // namespace

void StreamPool::add(uint64_t bytes) {
  used += bytes;
  usedHigh = std::max(usedHigh, used);
  reserved = std::max(reserved, roundUp(used, poolPiece));
  reservedHigh = std::max(reservedHigh, reserved);
}

void StreamPool::trim(uint64_t keepBytes) {
  reserved = std::max(roundUp(used, poolPiece), std::min(reserved, keepBytes / poolPiece * poolPiece));
}

MemoryAttribute StreamPool::attribute(CUmemPool_attribute which) {
  switch (which) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: return {.toggle = &reuse[0]};
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: return {.toggle = &reuse[1]};
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: return {.toggle = &reuse[2]};
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: return {.bytes = &releaseThreshold, .isFree = true};
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT: return {.bytes = &reserved};
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH: return {.bytes = &reservedHigh, .current = &reserved};
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT: return {.bytes = &used};
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH: return {.bytes = &usedHigh, .current = &used};
    default: return {};
  }
}

StreamPools::StreamPools(const Segment& segment, CompletionWords& completions) : segment(segment), completions(completions) {
  for (unsigned device = 0; device < maxDevices; ++device) {
    current[device] = defaultOf(device);
    pools[current[device]] = {.device = device, .isDefault = true};
  }
}

StreamPool* StreamPools::find(CUmemoryPool pool) {
  auto found = pools.find(pool);
  return found == pools.end() || found->second.destroyed ? nullptr : &found->second;
}

CUmemoryPool StreamPools::defaultOf(unsigned device) const { return fromWire<CUmemoryPool>(firstHandle + device * 16); }

CUmemoryPool StreamPools::create(unsigned device, uint64_t mostBytes) {
  auto handle = fromWire<CUmemoryPool>(firstHandle + (maxDevices + created++) * 16);
  pools[handle] = {.device = device, .mostBytes = mostBytes};
  return handle;
}

CUresult StreamPools::describe(CUmemoryPool pool, unsigned device, uint64_t bytes, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  const StreamPool* from = find(pool != nullptr ? pool : currentOf(device));
  if (from == nullptr || from->isTaken) return CUDA_ERROR_INVALID_VALUE;
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, static_cast<int>(from->device)};
  params.bytesize = bytes;
  return CUDA_SUCCESS;
}

void StreamPools::destroy(CUmemoryPool pool) {
  StreamPool& gone = pools.at(pool);
  if (current[gone.device] == pool) current[gone.device] = defaultOf(gone.device);
  if (gone.used == 0)
    pools.erase(pool);
  else
    gone.destroyed = true;
}

void StreamPools::allocated(uint64_t address, uint64_t bytes, CUmemoryPool pool) {
  owned[address] = {pool, bytes};
  pools.at(pool).add(bytes);
}

void StreamPools::freed(uint64_t address) {
  auto found = owned.find(address);
  if (found == owned.end()) return;
  auto pool = pools.find(found->second.pool);
  pool->second.remove(found->second.bytes);
  if (pool->second.destroyed && pool->second.used == 0) pools.erase(pool);
  owned.erase(found);
}

CUmemoryPool StreamPools::poolOf(uint64_t address) const {
  auto found = owned.find(address);
  return found == owned.end() ? nullptr : found->second.pool;
}

std::optional<uint32_t> StreamPools::lineOf(unsigned device, uint64_t stream) {
  auto found = fencesByStream.find({device, stream});
  if (found != fencesByStream.end()) return found->second.completion;
  auto completion = completions.take(device);
  if (completion) fencesByStream[{device, stream}] = {*completion};
  return completion;
}

std::optional<uint64_t> StreamPools::takeOfStream(unsigned device, unsigned streamDevice, uint64_t stream, uint64_t bytes) {
  auto best = pendingFrees.end();
  for (auto entry = pendingFrees.begin(); entry != pendingFrees.end(); ++entry) {
    auto& freed = entry->second;
    bool fits = freed.bytes >= bytes && freed.bytes - bytes <= bytes / 4;
    if (freed.device != device || freed.streamDevice != streamDevice || freed.stream != stream) continue;
    if (freed.sequence == nobodys || !fits) continue;
    if (best == pendingFrees.end() || freed.bytes < best->second.bytes) best = entry;
  }
  if (best == pendingFrees.end()) return std::nullopt;
  uint64_t address = best->first;
  drop(address);
  return address;
}

void StreamPools::cool(uint64_t address, const Freed& freed) {
  pendingFrees.emplace(address, freed);
  pendingFreeCount.store(pendingFrees.size(), std::memory_order_relaxed);
}

void StreamPools::drop(uint64_t address) {
  pendingFrees.erase(address);
  pendingFreeCount.store(pendingFrees.size(), std::memory_order_relaxed);
}

void StreamPools::setSequence(uint64_t address, uint64_t sequence) {
  auto found = pendingFrees.find(address);
  if (found == pendingFrees.end()) return;
  found->second.sequence = sequence;
  auto& last = fencesByStream[{found->second.streamDevice, found->second.stream}].lastSequence;
  last = std::max(last, sequence);
}

bool StreamPools::hasPendingFree(unsigned device) const {
  return std::any_of(pendingFrees.begin(), pendingFrees.end(), [&](auto& entry) { return entry.second.device == device; });
}

uint32_t StreamPools::freeingDevices(unsigned device) const {
  uint32_t devices = 0;
  for (auto& [address, freed] : pendingFrees)
    if (freed.device == device) devices |= 1u << freed.streamDevice;
  return devices;
}

std::vector<uint64_t> StreamPools::takePast(unsigned device, bool all) {
  std::vector<uint64_t> past;
  for (auto& [address, freed] : pendingFrees) {
    if (freed.device != device || freed.sequence == nobodys || (!all && !isPast(freed))) continue;
    freed.sequence = nobodys;
    past.push_back(address);
  }
  return past;
}

bool StreamPools::isPast(const Freed& freed) const {
  auto fences = fencesByStream.find({freed.streamDevice, freed.stream});
  return fences == fencesByStream.end() ||
         segment.completionWord(fences->second.completion).done.load(std::memory_order_acquire) >= freed.sequence;
}

void StreamPools::dropLines(const HandleTable& handles) {
  std::erase_if(fencesByStream, [&](auto& entry) {
    auto [device, stream] = entry.first;
    if (stream == 0 || handles.find<api::Kind::STREAM>(stream) != nullptr) return false;
    for (auto& [address, freed] : pendingFrees)
      if (freed.streamDevice == device && freed.stream == stream) return false;
    completions.give(entry.second.completion, device, entry.second.lastSequence);
    return true;
  });
}

CUmemoryPool Memory::poolOf(uint64_t address) const {
  std::lock_guard lock(mutex);
  return pools.poolOf(address);
}

void Memory::collect(Thread& thread) { collect(thread, thread.device(), false); }

// The error is for the call that waits for that device.
void Memory::awaitFrees(Thread& thread, unsigned device) {
  uint32_t devices;
  {
    std::lock_guard lock(mutex);
    devices = pools.freeingDevices(device) & ~(1u << device);
  }
  for (; devices != 0; devices &= devices - 1) awaitDevice(thread, static_cast<unsigned>(std::countr_zero(devices)));
}

void Memory::collect(Thread& thread, unsigned device, bool all) {
  if (!pools.hasAny()) return;
  std::vector<uint64_t> past;
  {
    std::lock_guard lock(mutex);
    past = pools.takePast(device, all);
  }
  // The frame that frees each goes into the ring before another allocation can get its addresses.
  for (uint64_t address : past) postFree(thread, device, address);
  std::lock_guard lock(mutex);
  for (uint64_t address : past) {
    devices[device].free(address);
    pools.drop(address);
  }
}

// Memory freed in this stream is reused first: it needs no waiting, no other memory, and no frame. What is new is there before
// work that the stream, which may be another device's, is given from now on.
CUresult Memory::allocateOrdered(Thread& thread, uint64_t bytes, CUmemoryPool pool, uint64_t stream,
                                 uint64_t& address) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > deviceArenaBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const uint64_t asked = bytes;
  bytes = roundUp(bytes, allocationAlignment);  // all of it, because another allocation may reuse it
  const unsigned streamDevice = thread.deviceOf(stream);
  unsigned device;
  std::optional<uint64_t> reused;
  {
    std::lock_guard lock(mutex);
    StreamPool* from = pools.find(pool);
    if (from == nullptr || from->isTaken) return CUDA_ERROR_INVALID_VALUE;
    device = from->device;
    if (device != streamDevice && !thread.session.devices[streamDevice].canAccess(device)) return CUDA_ERROR_INVALID_DEVICE;
    if (from->mostBytes != 0 && (bytes > from->mostBytes || from->used > from->mostBytes - bytes))
      return CUDA_ERROR_OUT_OF_MEMORY;
    reused = pools.takeOfStream(device, streamDevice, stream, bytes);
    if (reused) {
      pools.allocated(*reused, bytes, pool);
      devices[device].setAsked(*reused, asked);
    }
  }
  if (reused) return address = *reused, CUDA_SUCCESS;
  if (CUresult error = allocate(thread, device, bytes, 0, address)) return error;
  if (device != streamDevice)
    if (CUresult error = orderBehindAll(thread, streamDevice, 1u << device)) return error;
  std::lock_guard lock(mutex);
  pools.allocated(address, bytes, pool);
  devices[device].setAsked(address, asked);
  return CUDA_SUCCESS;
}

CUresult Memory::freeOrdered(Thread& thread, uint64_t address, uint64_t stream) {
  const unsigned streamDevice = thread.deviceOf(stream);
  SharedObjects& shared = thread.session.shared;
  if (shared.isTaken(address)) {
    if (!shared.isTakenOfPool(address)) return CUDA_ERROR_INVALID_VALUE;
    if (CUresult error = synchronizeStream(thread, stream)) return error;
    return shared.closeMemory(thread, address, true);
  }
  const auto device = static_cast<unsigned>((address - deviceArenaBase) / deviceArenaBytes);
  if (!inDeviceArenas(address) || device >= thread.session.devices.size()) return CUDA_ERROR_INVALID_VALUE;
  const bool isGiven = shared.isGiven(address);
  std::optional<uint32_t> completion;
  {
    std::lock_guard lock(mutex);
    pools.dropLines(thread.session.handles);
    auto found = devices[device].at(address);
    if (!found || pools.isPendingFree(address) || isFreedLater(address)) return CUDA_ERROR_INVALID_VALUE;
    completion = pools.lineOf(streamDevice, stream);
    if (completion) {
      uint64_t again = pools.poolOf(address) != nullptr && !isGiven ? found->bytes : 0;
      pools.freed(address);
      pools.cool(address, {device, again, streamDevice, stream, StreamPools::nobodys});
    }
  }
  if (!completion) {  // all are taken: wait
    CUresult waited = device == streamDevice ? CUDA_SUCCESS : synchronizeStream(thread, stream);
    return waited != CUDA_SUCCESS ? waited : free(thread, address);
  }
  if (isGiven) shared.freed(address);
  uint64_t sequence;
  {
    Call<api::Cuda::StreamFenceParams> frame(thread.of(stream), api::Method::streamFence);
    frame.setStream(stream);
    frame->setLine(*completion);
    sequence = frame.sequence();
    if (CUresult error = frame.post()) return error;
  }
  std::lock_guard lock(mutex);
  pools.setSequence(address, sequence);
  return CUDA_SUCCESS;
}

CUresult Memory::trimPool(Thread& thread, CUmemoryPool pool, uint64_t keepBytes) {
  collect(thread);
  unsigned device;
  {
    std::lock_guard lock(mutex);
    StreamPool* trimmed = pools.find(pool);
    if (trimmed == nullptr || trimmed->isTaken) return CUDA_ERROR_INVALID_VALUE;
    device = trimmed->device;
    trimmed->trim(keepBytes);
  }
  trim(thread, device, keepBytes);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
