#include "intercept/session/memory/stream-pools.h"

#include <algorithm>
#include <span>
#include <utility>

#include "intercept/session/call.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

namespace {

// CUDA's pools take memory in pieces of this size.
constexpr uint64_t poolPiece = 32 * MiB;
// Not an address, and nothing that another handle could be.
constexpr uint64_t firstHandle = uint64_t{0x706f'6f6c} << 16;

// What is at that address; a new entry is the spare one, if there is one.
template <typename Entries>
typename Entries::mapped_type& entryAt(Entries& entries, typename Entries::node_type& spare, uint64_t address) {
  if (!spare) return entries.try_emplace(address).first->second;
  spare.key() = address;
  return entries.insert(std::move(spare)).position->second;
}

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

StreamPool::StreamPool(const PoolPlace& place, bool isDefault) : place(place), isDefault(isDefault) {
  const auto own = accessor(place.location, maxDevices);
  if (own && !place.isManaged()) access[*own] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
}

std::optional<unsigned> StreamPool::accessor(const CUmemLocation& location, size_t devices) {
  if (location.type == CU_MEM_LOCATION_TYPE_HOST || location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA) return maxDevices;
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id < 0) return std::nullopt;
  const auto device = static_cast<unsigned>(location.id);
  return device < devices ? std::optional(device) : std::nullopt;
}

CUresult StreamPool::checkAccess(const CUmemAccessDesc& wanted, const std::vector<DeviceInfo>& devices) const {
  const bool isOfDevice = !place.isManaged() && place.isOnDevice(), isNone = wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_NONE;
  if (wanted.flags == CU_MEM_ACCESS_FLAGS_PROT_READ) return CUDA_ERROR_NOT_SUPPORTED;
  if (!isNone && wanted.flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE) return CUDA_ERROR_INVALID_VALUE;
  const auto who = accessor(wanted.location, devices.size());
  if (wanted.location.type == CU_MEM_LOCATION_TYPE_DEVICE) {
    if (!who) return CUDA_ERROR_INVALID_DEVICE;
    const auto own = static_cast<unsigned>(place.location.id);
    const bool may = !isOfDevice || (*who == own ? !isNone : isNone || devices[*who].canAccess(own));
    return may ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
  }
  if (isOfDevice) return CUDA_ERROR_NOT_SUPPORTED;
  if (!who) return CUDA_ERROR_INVALID_VALUE;
  return isNone && !place.isManaged() ? CUDA_ERROR_NOT_SUPPORTED : CUDA_SUCCESS;
}

PoolSource StreamPool::sourceFor(unsigned streamDevice) const {
  const unsigned device = place.isOnDevice() ? static_cast<unsigned>(place.location.id) : streamDevice;
  if (place.isManaged()) return {PoolSource::Kind::managed, device};
  return place.isOnDevice() ? PoolSource{PoolSource::Kind::device, device} : PoolSource{PoolSource::Kind::host, hostMemoryDevice};
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
  for (unsigned place = 0; place < PoolPlace::count; ++place) {
    current[place] = defaultOf(place);
    pools.emplace(current[place], StreamPool(PoolPlace::at(place), true));
  }
}

StreamPool* StreamPools::find(CUmemoryPool pool) {
  auto found = pools.find(pool);
  return found == pools.end() || found->second.destroyed ? nullptr : &found->second;
}

CUmemoryPool StreamPools::defaultOf(unsigned place) const { return fromWire<CUmemoryPool>(firstHandle + place * 16); }

CUmemoryPool StreamPools::create(const PoolPlace& place, uint64_t mostBytes) {
  auto handle = fromWire<CUmemoryPool>(firstHandle + (PoolPlace::count + created++) * 16);
  pools.emplace(handle, StreamPool(place)).first->second.mostBytes = roundUp(mostBytes, poolPiece);
  return handle;
}

CUresult StreamPools::setCurrent(PoolPlace place, CUmemoryPool pool, bool ofAnyType) {
  const StreamPool* chosen = find(pool);
  if (chosen != nullptr && ofAnyType) place.type = chosen->place.type;
  if (chosen == nullptr || chosen->isTaken || !(chosen->place == place)) return CUDA_ERROR_INVALID_VALUE;
  current[place.number()] = pool;
  return CUDA_SUCCESS;
}

CUresult StreamPools::describe(CUmemoryPool pool, unsigned device, uint64_t bytes, CUDA_MEM_ALLOC_NODE_PARAMS& params) {
  const StreamPool* from = find(pool != nullptr ? pool : currentOf(device));
  if (from == nullptr || from->isTaken || from->place.location.type == CU_MEM_LOCATION_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  if (!from->place.isOnDevice()) return CUDA_ERROR_NOT_SUPPORTED;
  params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  params.poolProps.location = from->place.location;
  params.bytesize = bytes;
  return CUDA_SUCCESS;
}

void StreamPools::destroy(CUmemoryPool pool) {
  StreamPool& gone = pools.at(pool);
  const unsigned place = gone.place.number();
  if (current[place] == pool) current[place] = defaultOf(place);
  if (gone.used == 0)
    pools.erase(pool);
  else
    gone.destroyed = true;
}

void StreamPools::allocated(uint64_t address, uint64_t bytes, CUmemoryPool pool, const PoolSource& source) {
  StreamPool& from = pools.at(pool);
  entryAt(owned, spareOwned, address) = {pool, &from, bytes, source};
  from.add(bytes);
}

void StreamPools::freed(uint64_t address) {
  auto found = owned.find(address);
  if (found == owned.end()) return;
  StreamPool& from = *found->second.pool;
  from.remove(found->second.bytes);
  if (from.destroyed && from.used == 0) pools.erase(found->second.handle);
  spareOwned = owned.extract(found);
}

CUmemoryPool StreamPools::poolOf(uint64_t address) const {
  auto found = owned.find(address);
  return found == owned.end() ? nullptr : found->second.handle;
}

std::optional<PoolSource> StreamPools::sourceOf(uint64_t address) const {
  auto found = owned.find(address);
  return found == owned.end() ? std::nullopt : std::optional(found->second.source);
}

bool StreamPools::hasAccess(uint64_t address, std::optional<unsigned> device) const {
  auto found = owned.find(address);
  if (found == owned.end()) return false;
  auto devices = std::span(found->second.pool->access).first(maxDevices);
  if (device) devices = devices.subspan(*device, 1);
  return std::ranges::any_of(devices, [](auto flags) { return flags != CU_MEM_ACCESS_FLAGS_PROT_NONE; });
}

StreamPools::Fences* StreamPools::fencesOf(unsigned device, uint64_t stream, const HandleTable& handles) {
  auto found = fencesByStream.find({device, stream});
  if (found != fencesByStream.end()) return &found->second;
  dropFences(handles);
  auto completion = completions.take(device);
  return completion ? &fencesByStream.try_emplace({device, stream}, *completion).first->second : nullptr;
}

std::optional<uint64_t> StreamPools::takeOfStream(const PoolSource& source, unsigned streamDevice, uint64_t stream,
                                                  uint64_t bytes) {
  const uint64_t waste = source.kind == PoolSource::Kind::device ? bytes / 4 : 0;
  auto best = pendingFrees.end();
  for (auto entry = pendingFrees.begin(); entry != pendingFrees.end(); ++entry) {
    auto& freed = entry->second.freed;
    bool fits = freed.bytes >= bytes && freed.bytes - bytes <= waste;
    if (freed.source != source || freed.streamDevice != streamDevice || freed.stream != stream || !fits) continue;
    if (entry->second.sequence.load(std::memory_order_acquire) == unsent) continue;
    if (best == pendingFrees.end() || freed.bytes < best->second.freed.bytes) best = entry;
  }
  if (best == pendingFrees.end()) return std::nullopt;
  uint64_t address = best->first;
  drop(address);
  return address;
}

StreamPools::Cooling& StreamPools::cool(uint64_t address, const Freed& freed, Fences& fences) {
  Cooling& cooling = entryAt(pendingFrees, spareCooling, address);
  cooling.freed = freed;
  cooling.fences = &fences;
  cooling.sequence.store(unsent, std::memory_order_relaxed);
  pendingFreeCount.store(pendingFrees.size(), std::memory_order_relaxed);
  return cooling;
}

void StreamPools::drop(uint64_t address) {
  spareCooling = pendingFrees.extract(address);
  pendingFreeCount.store(pendingFrees.size(), std::memory_order_relaxed);
}

bool StreamPools::hasPendingFree(const StreamPool& pool) const {
  return std::ranges::any_of(pendingFrees, [&](auto& entry) {
    const PoolSource& source = entry.second.freed.source;
    return pool.sourceFor(source.device) == source;
  });
}

uint32_t StreamPools::freeingDevices(unsigned device) const {
  uint32_t devices = 0;
  for (auto& [address, cooling] : pendingFrees)
    if (cooling.freed.source.device == device) devices |= 1u << cooling.freed.streamDevice;
  return devices;
}

std::vector<uint64_t> StreamPools::takePast(unsigned device, bool all) {
  std::vector<uint64_t> past;
  for (auto& [address, cooling] : pendingFrees) {
    const bool isOwn = cooling.freed.source.device == device, isOver = all && (isOwn || cooling.freed.streamDevice == device);
    if (cooling.sequence.load(std::memory_order_acquire) == unsent || !(isOver || (isOwn && isPast(cooling)))) continue;
    cooling.sequence.store(unsent, std::memory_order_relaxed);
    past.push_back(address);
  }
  return past;
}

bool StreamPools::isPast(const Cooling& cooling) const {
  return segment.completionWord(cooling.fences->completion).done.load(std::memory_order_acquire) >=
         cooling.sequence.load(std::memory_order_relaxed);
}

void StreamPools::dropFences(const HandleTable& handles) {
  std::erase_if(fencesByStream, [&](auto& entry) {
    auto [device, stream] = entry.first;
    if (stream == 0 || handles.find<api::Kind::STREAM>(stream) != nullptr) return false;
    for (auto& [address, cooling] : pendingFrees)
      if (cooling.fences == &entry.second) return false;
    completions.give(entry.second.completion, device, entry.second.lastSequence.load(std::memory_order_relaxed));
    return true;
  });
}

}  // namespace vgpu::client
