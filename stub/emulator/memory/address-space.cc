#include "stub/emulator/memory/address-space.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "stub/emulator/driver/casts-unsafe.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t TiB = uint64_t{1} << 40;
constexpr uint64_t highestAddress = uint64_t{1} << 47;
constexpr size_t freedKept = 256;

std::shared_ptr<HostView> checkedView(void* base, uint64_t bytes) {
  if (base == MAP_FAILED) refuse(CUDA_ERROR_OUT_OF_MEMORY, std::string("mmap: ") + std::strerror(errno));
  return std::make_shared<HostView>(static_cast<std::byte*>(base), bytes, true);
}

}  // namespace

HostView::~HostView() {
  if (owned) munmap(start, size);
}

std::shared_ptr<HostView> HostView::anonymous(uint64_t bytes) {
  return checkedView(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0),
                     bytes);
}

std::shared_ptr<HostView> HostView::anonymousAt(uint64_t address, uint64_t bytes) {
  void* const wanted = asHostPointer(address);
  void* const base = mmap(wanted, bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (base != wanted && base != MAP_FAILED) munmap(base, bytes);  // kernels before 4.17 treat the address as a hint
  if (base != wanted)
    refuse(CUDA_ERROR_OUT_OF_MEMORY,
           "a module's managed variables must have the same addresses on the host, but this process already uses them");
  return checkedView(base, bytes);
}

std::shared_ptr<HostView> HostView::ofFile(int fd, uint64_t offset, uint64_t bytes) {
  return checkedView(
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, static_cast<off_t>(offset)), bytes);
}

std::shared_ptr<HostView> HostView::borrowed(std::byte* base, uint64_t bytes) {
  return std::make_shared<HostView>(base, bytes, false);
}

const RegionTable::Row* RegionTable::find(uint64_t address) const {
  auto after = std::upper_bound(rows.begin(), rows.end(), address,
                                [](uint64_t wanted, const Row& row) { return wanted < row.base; });
  if (after == rows.begin()) return nullptr;
  const Row& row = *std::prev(after);
  return address < row.end ? &row : nullptr;
}

AddressSpace::AddressSpace()
    : pieces(0x300000000000, 4 * TiB),
      managed(managedBase, managedBytes),
      heaps(0x380000000000, 7 * TiB),
      plain(0x4c0000000000, 4 * TiB) {}

uint64_t AddressSpace::reserve(uint64_t bytes, uint64_t alignment, uint64_t wanted) {
  std::lock_guard lock(mutex);
  bool free = wanted != 0 && wanted % alignment == 0 && wanted < highestAddress && bytes <= highestAddress - wanted;
  if (free) {
    auto next = reservations.lower_bound(wanted);
    free = (next == reservations.end() || next->first - wanted >= bytes) &&
           (next == reservations.begin() || std::prev(next)->first + std::prev(next)->second <= wanted);
  }
  uint64_t base = wanted;
  if (!free) {  // the wanted address is only a hint
    std::optional<uint64_t> other = pieces.take(bytes, alignment);
    if (!other) refuse(CUDA_ERROR_OUT_OF_MEMORY);
    base = *other;
  }
  reservations[base] = bytes;
  return base;
}

void AddressSpace::unreserve(uint64_t base, uint64_t bytes) {
  std::lock_guard lock(mutex);
  auto at = reservations.find(base);
  if (at == reservations.end() || at->second != bytes) refuse(CUDA_ERROR_INVALID_VALUE);
  auto mapping = mappings.lower_bound(base);
  if (mapping != mappings.end() && mapping->first < base + bytes) refuse(CUDA_ERROR_INVALID_VALUE);
  reservations.erase(at);
  pieces.give(base);
}

bool AddressSpace::reserved(uint64_t base, uint64_t bytes) const {
  std::lock_guard lock(mutex);
  auto after = reservations.upper_bound(base);
  if (after == reservations.begin()) return false;
  const auto& [start, length] = *std::prev(after);
  return base - start < length && bytes <= length - (base - start);
}

void AddressSpace::map(Mapping mapping, CUresult taken) {
  std::lock_guard lock(mutex);
  auto next = mappings.lower_bound(mapping.base);
  bool overlaps = (next != mappings.end() && next->first - mapping.base < mapping.bytes) ||
                  (next != mappings.begin() && mapping.base - std::prev(next)->first < std::prev(next)->second.bytes);
  if (overlaps) refuse(taken);
  mapping.bufferId = nextBufferId++;
  dropFreed(mapping.base, mapping.bytes);
  uint64_t base = mapping.base;
  mappings.emplace(base, std::move(mapping));
  currentTable = nullptr;
}

Mapping AddressSpace::unmap(uint64_t base, MappingKind kind, CUresult missing) {
  std::lock_guard lock(mutex);
  auto at = mappings.find(base);
  if (at == mappings.end() || at->second.kind != kind) refuse(missing);
  Mapping mapping = std::move(at->second);
  mappings.erase(at);
  rememberFreed(mapping.base, mapping.bytes, makerOf(mapping));
  currentTable = nullptr;
  return mapping;
}

Mapping AddressSpace::beginFree(uint64_t base) {
  std::lock_guard lock(mutex);
  auto at = mappings.find(base);
  if (at == mappings.end() || at->second.kind != MappingKind::plain || !at->second.context || at->second.freeing) {
    refuse(CUDA_ERROR_INVALID_VALUE);
  }
  at->second.freeing = true;
  return at->second;
}

AddressSpace::Run AddressSpace::physicalIn(uint64_t base, uint64_t bytes) {
  uint64_t end = base + bytes, covered = base;
  auto first = mappings.find(base), last = first;
  while (last != mappings.end() && covered < end && last->first == covered &&
         last->second.kind == MappingKind::physical) {
    covered += last->second.bytes;
    ++last;
  }
  if (covered != end) refuse(CUDA_ERROR_INVALID_VALUE);
  return {first, last};
}

std::vector<Mapping> AddressSpace::unmapPhysical(uint64_t base, uint64_t bytes) {
  std::lock_guard lock(mutex);
  std::vector<Mapping> unmapped;
  auto [first, last] = physicalIn(base, bytes);
  for (auto each = first; each != last; ++each) unmapped.push_back(std::move(each->second));
  mappings.erase(first, last);
  notes.erase(notes.lower_bound(base), notes.lower_bound(base + bytes));
  rememberFreed(base, bytes, "cuMemMap");
  currentTable = nullptr;
  return unmapped;
}

void AddressSpace::setAccess(uint64_t base, uint64_t bytes, uint64_t device, CUmemAccess_flags access) {
  std::lock_guard lock(mutex);
  auto [first, last] = physicalIn(base, bytes);
  for (auto each = first; each != last; ++each) {
    Mapping& mapping = each->second;
    mapping.readers = access == CU_MEM_ACCESS_FLAGS_PROT_NONE ? mapping.readers & ~device : mapping.readers | device;
    mapping.writers =
        access == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? mapping.writers | device : mapping.writers & ~device;
  }
  currentTable = nullptr;
}

// The mutex is held.
AddressSpace::Mappings::const_iterator AddressSpace::holding(uint64_t address) const {
  auto after = mappings.upper_bound(address);
  if (after == mappings.begin()) return mappings.end();
  auto at = std::prev(after);
  return address - at->first < at->second.bytes ? at : mappings.end();
}

std::optional<Mapping> AddressSpace::find(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto at = holding(address);
  return at == mappings.end() ? std::nullopt : std::optional(at->second);
}

bool AddressSpace::isDeviceAddress(uint64_t address) const {
  return address - 0x200000000000 < 0x500000000000 - 0x200000000000 || reserved(address, 1);
}

std::optional<Mapping> AddressSpace::findKind(uint64_t base, MappingKind kind) const {
  std::lock_guard lock(mutex);
  auto at = mappings.find(base);
  return at == mappings.end() || at->second.kind != kind ? std::nullopt : std::optional(at->second);
}

std::optional<std::vector<Piece>> AddressSpace::resolve(uint64_t address, uint64_t bytes, uint64_t devices) const {
  std::lock_guard lock(mutex);
  std::vector<Piece> pieces;
  auto at = holding(address);
  while (at != mappings.end()) {
    const Mapping& mapping = at->second;
    if (mapping.kind == MappingKind::physical && (mapping.readers & devices) == 0) return std::nullopt;  // no access was granted
    uint64_t offset = address - mapping.base, part = std::min(bytes, mapping.bytes - offset);
    pieces.push_back({mapping.host + offset, part, mapping.view});
    bytes -= part;
    address += part;
    if (bytes == 0) return pieces;
    if (mapping.kind != MappingKind::physical) return std::nullopt;
    ++at;
    if (at == mappings.end() || at->first != address || at->second.kind != MappingKind::physical) return std::nullopt;
  }
  return std::nullopt;
}

std::vector<Mapping> AddressSpace::mappingsOf(const Context& context) const {
  std::lock_guard lock(mutex);
  std::vector<Mapping> mine;
  for (const auto& [base, mapping] : mappings) {
    if (mapping.context == &context) mine.push_back(mapping);
  }
  return mine;
}

void AddressSpace::note(uint64_t address, uint64_t bytes, std::string owner) {
  std::lock_guard lock(mutex);
  for (auto at = holding(address); at != mappings.end() && at->first < address + bytes; ++at) {
    mappings.at(at->first).noted = true;
  }
  dropFreed(address, bytes);
  notes[address] = {bytes, std::move(owner)};
  currentTable = nullptr;
}

void AddressSpace::forget(uint64_t address) {
  std::lock_guard lock(mutex);
  auto at = notes.find(address);
  if (at == notes.end()) return;
  rememberFreed(address, at->second.bytes, std::move(at->second.owner));
  notes.erase(at);
  currentTable = nullptr;
}

// The mutex is held.
void AddressSpace::addRows(RegionTable& table, const Mapping& mapping) const {
  auto add = [&](uint64_t base, uint64_t end) {
    table.rows.push_back({base, end, mapping.host + (base - mapping.base), mapping.readers, mapping.writers,
                          mapping.kind == MappingKind::plain || mapping.kind == MappingKind::image});
  };
  uint64_t end = mapping.base + mapping.bytes;
  table.views.push_back(mapping.view);
  if (!mapping.noted) return add(mapping.base, end);
  auto at = notes.upper_bound(mapping.base);
  if (at != notes.begin()) --at;  // a note that begins before the mapping may extend into it
  for (; at != notes.end() && at->first < end; ++at) {
    uint64_t from = std::max(at->first, mapping.base), to = std::min(at->first + at->second.bytes, end);
    if (from < to) add(from, to);
  }
}

std::shared_ptr<const RegionTable> AddressSpace::table() const {
  std::lock_guard lock(mutex);
  if (!currentTable) {
    auto table = std::make_shared<RegionTable>();
    for (const auto& [base, mapping] : mappings) addRows(*table, mapping);
    currentTable = std::move(table);
  }
  return currentTable;
}

// The mutex is held.
void AddressSpace::rememberFreed(uint64_t base, uint64_t bytes, std::string owner) {
  recentlyFreed.push_front({base, bytes, std::move(owner)});
  if (recentlyFreed.size() > freedKept) recentlyFreed.pop_back();
}

// Forgets freed allocations in a range that is used again. The mutex is held.
void AddressSpace::dropFreed(uint64_t base, uint64_t bytes) {
  std::erase_if(recentlyFreed,
                [&](const Freed& freed) { return freed.base < base + bytes && base < freed.base + freed.bytes; });
}

std::optional<Memory::Region> KernelMemory::find(uint64_t address) const {
  auto regionOf = [&](const RegionTable::Row* row) -> std::optional<Region> {
    if (!row) return std::nullopt;
    uint64_t allowed = row->peerRules ? peers : device;
    if (!(row->readers & allowed)) return std::nullopt;
    return Region{row->base, row->end - row->base, row->host, (row->writers & allowed) != 0};
  };
  if (std::optional<Region> region = regionOf(currentTable->find(address))) return region;
  std::shared_ptr<const RegionTable> now = space.table();
  std::lock_guard lock(mutex);
  if (now != currentTable && (later.empty() || later.back() != now)) later.push_back(now);
  return regionOf(now->find(address));
}

}  // namespace vgpu::emulator::api
