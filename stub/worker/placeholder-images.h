// Images of modules that have one variable and nothing else, by which ModuleGroups fills gaps (module-groups.h). The driver compiles each
// size once: from text, loading one takes ten times as long, and behind each module of a program that calls libraries dozens are loaded.
//
// Of one GPU, in whose context they are used. Nothing of it survives a suspend.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <map>
#include <vector>

#include "stub/driver/driver.h"

namespace vgpu::stub {

class PlaceholderImages {
 public:
  explicit PlaceholderImages(const Driver& driver) : driver(driver) {}
  static constexpr char variable[] = "placeholder";
  // For cuModuleLoadDataEx: of that variable, with so many bytes. The text, if the driver cannot compile it.
  const void* of(uint64_t bytes);

 private:
  const Driver& driver;
  std::map<uint64_t, std::vector<char>> images;  // by the bytes of their variable
};

}  // namespace vgpu::stub
