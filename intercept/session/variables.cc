#include "intercept/session/variables.h"

#include <iterator>

#include "vgpu/base/ranges.h"

namespace vgpu::client {

void Variables::add(const std::string& name, const KnownVariable& variable) {
  std::lock_guard lock(mutex);
  byName[{variable.module, name}] = variable;
  byAddress[variable.address] = variable;
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

void Variables::dropModule(uint64_t module) {
  std::lock_guard lock(mutex);
  for (auto next = byName.lower_bound({module, ""}); next != byName.end() && next->first.first == module;) {
    byAddress.erase(next->second.address);
    next = byName.erase(next);
  }
}

}  // namespace vgpu::client
