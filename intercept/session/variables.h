// The addresses of the loaded modules' variables, against which a copy to a symbol's address is checked.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>

namespace vgpu::client {

struct KnownVariable {
  uint64_t handle = 0, module = 0, address = 0, bytes = 0;
  bool isManaged = false;
};

class Variables {
 public:
  void add(const std::string& name, const KnownVariable& variable);
  std::optional<KnownVariable> find(uint64_t module, const std::string& name) const;
  std::optional<KnownVariable> at(uint64_t address) const;  // the one that holds `address`
  void dropModule(uint64_t module);

 private:
  mutable std::mutex mutex;  // a leaf
  std::map<std::pair<uint64_t, std::string>, KnownVariable> byName;
  std::map<uint64_t, KnownVariable> byAddress;
};

}  // namespace vgpu::client
