#include "intercept/session/memory/mappings.h"

#include <algorithm>

#include "vgpu/api/handle.h"
#include "vgpu/base/ranges.h"

namespace vgpu::client {

Where MemoryMapping::where() const {
  const bool isDevices = std::ranges::any_of(access, [](uint8_t flags) { return flags != CU_MEM_ACCESS_FLAGS_PROT_NONE; });
  const bool isHosts = host && host->allowed() == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  if (isHosts) return isDevices ? Where::arena : Where::hosts;
  return isDevices ? Where::device : Where::nowhere;
}

const Mappings::Entry* Mappings::holding(uint64_t address) const {
  auto found = vgpu::holding(entries, address);
  return found == entries.end() ? nullptr : &*found;
}

bool Mappings::isFree(uint64_t address, uint64_t bytes) const {
  return vgpu::isFree(entries, address, bytes);
}

Where Mappings::locate(uint64_t address, uint64_t bytes) const {
  const Entry* entry = holding(address);
  if (entry == nullptr) return Where::nowhere;
  const Where where = entry->second.where();
  for (; entry != nullptr && entry->second.where() == where; entry = holding(address)) {
    const uint64_t inside = entry->second.bytes - (address - entry->first);
    if (bytes <= inside) return where;
    bytes -= inside;
    address += inside;
  }
  return Where::nowhere;
}

std::vector<uint64_t> Mappings::exactly(uint64_t address, uint64_t bytes) const {
  std::vector<uint64_t> whole;
  uint64_t at = address;
  for (auto each = entries.find(address); each != entries.end() && each->first == at && at - address < bytes; ++each) {
    whole.push_back(at);
    at += each->second.bytes;
  }
  if (at - address != bytes) whole.clear();
  return whole;
}

std::optional<std::vector<uint64_t>> Mappings::within(uint64_t address, uint64_t bytes) const {
  std::vector<uint64_t> whole;
  if (const Entry* first = holding(address); first != nullptr && first->first != address) return std::nullopt;
  for (auto each = entries.lower_bound(address); each != entries.end() && each->first - address < bytes; ++each) {
    if (each->second.bytes > bytes - (each->first - address)) return std::nullopt;
    whole.push_back(each->first);
  }
  return whole;
}

std::vector<uint64_t> Mappings::ofDevice(unsigned device) const {
  std::vector<uint64_t> all;
  for (auto& [address, mapping] : entries)
    if (handleDevice(mapping.physical) == device) all.push_back(address);
  return all;
}

}  // namespace vgpu::client
