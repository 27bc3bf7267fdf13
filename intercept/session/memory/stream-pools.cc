#include "intercept/session/memory/stream-pools.h"

#include <algorithm>
#include <bit>
#include <span>
#include <utility>

#include "intercept/session/call.h"
#include "vgpu/api/wire-value.h"

namespace vgpu::client {

namespace {

// CUDA's pools take memory in pieces of this size.
constexpr uint64_t poolPiece = 32 * MiB;
// The largest freed block that an allocation of `bytes` may reuse.
uint64_t mostFor(const PoolSource& source, uint64_t bytes) {
  return source.kind == PoolSource::Kind::device ? bytes + bytes / 4 : bytes;
}

// Handles that are neither addresses nor other objects' handles.
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

StreamPools::Block* StreamPools::find(uint64_t address) {
  auto found = blocks.find(address);
  return found == blocks.end() ? nullptr : &found->second;
}

const StreamPools::Block* StreamPools::findLive(uint64_t address) const {
  auto found = blocks.find(address);
  return found == blocks.end() || found->second.isFreed() ? nullptr : &found->second;
}

// A new entry reuses the spare node, if there is one.
StreamPools::Block& StreamPools::blockAt(uint64_t address) {
  if (Block* found = find(address)) return *found;
  if (!spare) return blocks.try_emplace(address).first->second;
  spare.key() = address;
  return blocks.insert(std::move(spare)).position->second;
}

void StreamPools::allocated(uint64_t address, uint64_t bytes, uint64_t asked, CUmemoryPool pool,
                            const PoolSource& source) {
  StreamPool& from = pools.at(pool);
  Block& block = blockAt(address);
  block.address = address;
  block.bytes = bytes;
  block.asked = asked;
  block.number = 0;
  block.source = source;
  block.handle = pool;
  block.pool = &from;
  from.add(asked);
}

void StreamPools::leavePool(Block& block) {
  StreamPool* from = std::exchange(block.pool, nullptr);
  if (from == nullptr) return;
  from->remove(block.asked);
  if (from->destroyed && from->used == 0) pools.erase(block.handle);
}

void StreamPools::freed(uint64_t address) {
  auto found = blocks.find(address);
  if (found == blocks.end() || found->second.isFreed()) return;
  leavePool(found->second);
  spare = blocks.extract(found);
}

CUmemoryPool StreamPools::poolOf(uint64_t address) const {
  const Block* found = findLive(address);
  return found == nullptr ? nullptr : found->handle;
}

bool StreamPools::hasAccess(uint64_t address, std::optional<unsigned> device) const {
  const Block* found = findLive(address);
  if (found == nullptr) return false;
  auto devices = std::span(found->pool->access).first(maxDevices);
  if (device) devices = devices.subspan(*device, 1);
  return std::ranges::any_of(devices, [](auto flags) { return flags != CU_MEM_ACCESS_FLAGS_PROT_NONE; });
}

StreamPools::Fences* StreamPools::findFences(unsigned device, uint64_t stream) {
  if (latest != nullptr && latest->stream == stream && latest->device == device) return latest;
  auto found = fencesByStream.find({device, stream});
  return found == fencesByStream.end() ? nullptr : latest = &found->second;
}

StreamPools::Fences* StreamPools::fencesOf(unsigned device, uint64_t stream, const HandleTable& handles) {
  if (Fences* found = findFences(device, stream)) return found;
  dropFences(handles);
  auto completion = completions.take(device);
  return completion ? &fencesByStream.try_emplace({device, stream}, device, stream, *completion).first->second : nullptr;
}

void StreamPools::link(Block& block, Fences& fences) {
  Block*& first = fences.freed[std::bit_width(block.bytes)];
  block.fences = &fences;
  block.before = nullptr;
  block.behind = first;
  if (first != nullptr) first->before = &block;
  first = &block;
  freedLike(block) += block.held;
  pendingFreeCount.fetch_add(1, std::memory_order_relaxed);
}

void StreamPools::unlink(Block& block) {
  Block*& first = block.fences->freed[std::bit_width(block.bytes)];
  (block.before != nullptr ? block.before->behind : first) = block.behind;
  if (block.behind != nullptr) block.behind->before = block.before;
  block.fences = nullptr;
  freedLike(block) -= block.held;
  pendingFreeCount.fetch_sub(1, std::memory_order_relaxed);
}

template <typename Visit>
void StreamPools::visitFreed(Visit&& visit) const {
  for (auto& [stream, fences] : fencesByStream)
    for (Block* first : fences.freed)
      for (Block* block = first; block != nullptr; block = block->behind) visit(*block);
}

StreamPools::Block* StreamPools::findFreed(const PoolSource& source, unsigned streamDevice, uint64_t stream, uint64_t bytes) {
  Fences* fences = findFences(streamDevice, stream);
  if (fences == nullptr) return nullptr;
  const uint64_t most = mostFor(source, bytes);
  Block* best = nullptr;
  for (size_t width = std::bit_width(bytes); width <= std::bit_width(most) && best == nullptr; ++width)
    for (Block* each = fences->freed[width]; each != nullptr; each = each->behind) {
      const bool fits = each->bytes >= bytes && each->bytes <= most && each->source == source;
      if (!fits || each->sequence.load(std::memory_order_acquire) == Block::unsent) continue;
      if (best == nullptr || each->bytes < best->bytes) best = each;
      if (best->bytes == bytes) break;
    }
  return best;
}

void StreamPools::reuse(Block& block, uint64_t asked, CUmemoryPool handle, StreamPool& pool) {
  unlink(block);
  block.asked = asked;
  block.number = 0;
  block.handle = handle;
  block.pool = &pool;
  pool.add(asked);
}

StreamPools::Block& StreamPools::cool(uint64_t address, uint64_t bytes, Block* ofPool, const PoolSource& source, bool mayBeReused,
                                      Fences& fences) {
  Block& block = ofPool != nullptr ? *ofPool : blockAt(address);
  leavePool(block);
  if (ofPool == nullptr) block.handle = nullptr;
  block.address = address;
  block.source = source;
  block.held = bytes;
  block.bytes = mayBeReused ? bytes : 0;
  block.sequence.store(Block::unsent, std::memory_order_relaxed);
  link(block, fences);
  return block;
}

void StreamPools::drop(uint64_t address) {
  auto found = blocks.find(address);
  unlink(found->second);
  spare = blocks.extract(found);
}

bool StreamPools::hasPendingFree(CUmemoryPool pool) const {
  bool found = false;
  visitFreed([&](const Block& block) { found |= block.handle == pool; });
  return found;
}

StreamPools::Block* StreamPools::findFreed(const PoolSource& source, uint64_t bytes) {
  Block* best = nullptr;
  visitFreed([&](Block& block) {
    const bool fits = block.bytes >= bytes && block.bytes <= mostFor(source, bytes);
    if (!fits || !(block.source == source) || block.sequence.load(std::memory_order_acquire) == Block::unsent) return;
    if (best == nullptr || block.bytes < best->bytes) best = &block;
  });
  return best;
}

std::vector<StreamFence> StreamPools::pendingFrees(const PoolSource& source) const {
  std::vector<StreamFence> frees;
  visitFreed([&](const Block& block) {
    const StreamFence fence = fenceOf(block);
    if (block.source == source && fence.record.sequence != Block::unsent) frees.push_back(fence);
  });
  return frees;
}

std::vector<uint64_t> StreamPools::takePast(unsigned device, bool all) {
  std::vector<uint64_t> past;
  visitFreed([&](Block& block) {
    const bool isOwn = block.source.device == device, isOver = all && (isOwn || block.fences->device == device);
    if (block.sequence.load(std::memory_order_acquire) == Block::unsent || !(isOver || (isOwn && isPast(block)))) return;
    block.sequence.store(Block::unsent, std::memory_order_relaxed);
    past.push_back(block.address);
  });
  return past;
}

bool StreamPools::isPast(const Block& block) const {
  return segment.completionWord(block.fences->completion).done.load(std::memory_order_acquire) >=
         block.sequence.load(std::memory_order_relaxed);
}

void StreamPools::dropFences(const HandleTable& handles) {
  latest = nullptr;
  std::erase_if(fencesByStream, [&](auto& entry) {
    auto [device, stream] = entry.first;
    if (stream == 0 || handles.find<api::Kind::STREAM>(stream) != nullptr) return false;
    if (std::ranges::any_of(entry.second.freed, [](const Block* first) { return first != nullptr; })) return false;
    completions.give(entry.second.completion, device, entry.second.lastSequence.load(std::memory_order_relaxed));
    return true;
  });
}

}  // namespace vgpu::client
