// The variables of loaded modules that the program has looked up: by name, with one handle for each, and by address, which copies are
// checked against. A managed variable belongs to the modules of several devices, and is known while one of them is loaded.
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
  // Returns the variable known by that name from now on: `variable`, or the one that another thread has added before.
  KnownVariable add(const std::string& name, const KnownVariable& variable);
  std::optional<KnownVariable> find(uint64_t module, const std::string& name) const;
  std::optional<KnownVariable> at(uint64_t address) const;  // the one that contains `address`
  // Removes a module's variables. Returns their handles.
  std::vector<uint64_t> dropModule(uint64_t module);

 private:
  mutable std::mutex mutex;  // leaf lock
  std::map<std::pair<uint64_t, std::string>, KnownVariable> byName;
  std::map<uint64_t, KnownVariable> byAddress;
};

}  // namespace vgpu::client
