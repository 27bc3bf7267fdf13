// The variables of loaded modules that the program has asked for, by their names, each of which has one handle, and by their addresses,
// against which copies are checked. A managed variable is of the modules of several devices, and known as long as one of them is loaded.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace vgpu::client {

struct KnownVariable {
  uint64_t handle = 0, module = 0, address = 0, bytes = 0;
  bool isManaged = false;
};

class Variables {
 public:
  // Returns what is known by that name from now on: `variable`, or what another thread has added before.
  KnownVariable add(const std::string& name, const KnownVariable& variable);
  std::optional<KnownVariable> find(uint64_t module, const std::string& name) const;
  std::optional<KnownVariable> at(uint64_t address) const;  // the one that holds `address`
  // Removes those of a module. Returns their handles.
  std::vector<uint64_t> dropModule(uint64_t module);

 private:
  mutable std::mutex mutex;  // a leaf
  std::map<std::pair<uint64_t, std::string>, KnownVariable> byName;
  std::map<uint64_t, KnownVariable> byAddress;
};

}  // namespace vgpu::client
