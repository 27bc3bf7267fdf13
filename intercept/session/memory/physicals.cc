#include "intercept/session/memory/physicals.h"

#include <algorithm>

#include "intercept/session/thread.h"

namespace vgpu::client {

unsigned Physical::device() const { return host ? hostMemoryDevice : static_cast<unsigned>(properties.location.id); }

Physical* Physicals::findLive(uint64_t handle) {
  auto found = entries.find(handle);
  return found == entries.end() || found->second.handles == 0 ? nullptr : &found->second;
}

const Physical* Physicals::find(uint64_t handle) const {
  auto found = entries.find(handle);
  if (found == entries.end()) return nullptr;
  return found->second.handles == 0 && found->second.mappings == 0 ? nullptr : &found->second;
}

const Physical* Physicals::named(const SharedName& name) const {
  auto found = std::ranges::find_if(entries, [&](auto& entry) { return entry.second.name == name; });
  return found == entries.end() ? nullptr : &found->second;
}

void Physicals::import(uint64_t handle, const Physical& physical) {
  Physical imported{.bytes = physical.bytes, .properties = physical.properties, .memory = physical.memory};
  imported.properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_NONE;
  ++entries.at(physical.memory).imports;
  add(handle, std::move(imported));
}

uint64_t Physicals::findUnused(const std::vector<uint64_t>& kept) {
  for (auto& [handle, physical] : entries) {
    std::erase_if(physical.exports, [](const ExportedMemory& exported) { return !exported.isOpen(); });
    const bool isUsed = physical.handles != 0 || physical.mappings != 0 || physical.imports != 0 || !physical.exports.empty();
    if (!isUsed && std::ranges::find(kept, handle) == kept.end()) return handle;
  }
  return 0;
}

void Physicals::remove(uint64_t handle) {
  const uint64_t memory = entries.at(handle).memory;
  entries.erase(handle);
  if (memory != handle) --entries.at(memory).imports;
}

void Physicals::letGo(unsigned device) {
  for (auto& [handle, physical] : entries)
    if (physical.device() == device) physical.handles = 0, physical.exports.clear();
}

}  // namespace vgpu::client
