#include "intercept/session/variables.h"

#include <iterator>

#include "vgpu/base/ranges.h"

namespace vgpu::client {

KnownVariable Variables::add(const std::string& name, const KnownVariable& variable) {
  std::lock_guard lock(mutex);
  byAddress.try_emplace(variable.address, variable);
  return byName.try_emplace({variable.module, name}, variable).first->second;
}

std::optional<KnownVariable> Variables::find(uint64_t module, const std::string& name) const {
  std::lock_guard lock(mutex);
  auto found = byName.find({module, name});
  if (found == byName.end()) return std::nullopt;
  return found->second;
}

std::optional<KnownVariable> Variables::at(uint64_t address) const {
  std::lock_guard lock(mutex);
  auto found = holding(byAddress, address);
  return found == byAddress.end() ? std::nullopt : std::optional(found->second);
}

std::vector<uint64_t> Variables::dropModule(uint64_t module) {
  std::lock_guard lock(mutex);
  std::vector<uint64_t> handles;
  for (auto next = byName.lower_bound({module, ""}); next != byName.end() && next->first.first == module;) {
    const KnownVariable dropped = next->second;
    next = byName.erase(next);
    handles.push_back(dropped.handle);
    if (auto known = byAddress.find(dropped.address); known != byAddress.end() && known->second.module == module) byAddress.erase(known);
    if (!dropped.isManaged) continue;
    for (auto& [name, other] : byName)
      if (other.address == dropped.address && other.module != module) byAddress.try_emplace(other.address, other);
  }
  return handles;
}

}  // namespace vgpu::client
