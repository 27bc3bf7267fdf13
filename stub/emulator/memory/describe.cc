// Describes an address for reports: the allocation in which it lies, or the nearest one, and who made that.
#include <iterator>

#include "stub/emulator/memory/address-space.h"
#include "stub/emulator/ptx/run/hex.h"

namespace vgpu::emulator::api {
namespace {

// Allocations farther away than this are not mentioned.
constexpr uint64_t nearBytes = uint64_t{64} << 20;

struct Candidate {
  uint64_t base = 0, bytes = 0;
  std::string maker;
  uint64_t distance(uint64_t address) const {
    if (address < base) return base - address;
    return address - base < bytes ? 0 : address - (base + bytes) + 1;
  }
};

std::string place(const Candidate& near, uint64_t address) {
  std::string of =
      "the " + std::to_string(near.bytes) + "-byte allocation made by " + near.maker + " at " + hex(near.base);
  if (address < near.base) return std::to_string(near.base - address) + " bytes before " + of;
  uint64_t offset = address - near.base;
  if (offset < near.bytes) return "at byte " + std::to_string(offset) + " of " + of;
  return std::to_string(offset - near.bytes) + " bytes past the end of " + of;
}

}  // namespace

const char* makerOf(const Mapping& mapping) {
  switch (mapping.kind) {
    case MappingKind::physical:
      return "cuMemMap";
    case MappingKind::plain:
      return mapping.pool ? "cuMemAllocAsync" : "cuMemAlloc";
    case MappingKind::image:
      return "cuModuleLoadData";
    case MappingKind::registered:
      return "cuMemHostRegister";
    case MappingKind::hostAllocation:
      return "cuMemHostAlloc";
    case MappingKind::managed:
      return "cuMemAllocManaged";
  }
  return "an unknown call";
}

std::string AddressSpace::describe(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto note = notes.upper_bound(address);
  bool inNote = note != notes.begin() && address - std::prev(note)->first < std::prev(note)->second.bytes;
  auto holder = holding(address);
  bool alive = holder != mappings.end() && (inNote || !holder->second.noted);
  for (const Freed& freed : recentlyFreed) {
    if (alive || address - freed.base >= freed.bytes) continue;
    std::string maker = freed.owner.empty() ? "" : ", made by " + freed.owner;
    return "inside memory that was freed: " + std::to_string(freed.bytes) + " bytes at " + hex(freed.base) + maker;
  }
  Candidate best;
  uint64_t bestDistance = nearBytes;
  auto consider = [&](Candidate candidate) {
    uint64_t distance = candidate.distance(address);
    if (distance >= bestDistance) return;
    bestDistance = distance;
    best = std::move(candidate);
  };
  auto after = notes.upper_bound(address);
  if (after != notes.end()) consider({after->first, after->second.bytes, after->second.owner});
  if (after != notes.begin()) {
    --after;
    consider({after->first, after->second.bytes, after->second.owner});
  }
  auto mapping = mappings.upper_bound(address);
  auto considerMapping = [&](const Mapping& found) {
    if (!found.noted) consider({found.base, found.bytes, makerOf(found)});
  };
  if (mapping != mappings.end()) considerMapping(mapping->second);
  if (mapping != mappings.begin()) considerMapping(std::prev(mapping)->second);
  if (bestDistance == nearBytes) return "no allocation is near it";
  return place(best, address);
}

}  // namespace vgpu::emulator::api
