// Images of modules with one variable and nothing else, with which ModuleGroups fills gaps (module-groups.h). The driver compiles each size
// once: loading PTX text takes ten times as long, and after each module of a program that calls libraries dozens are loaded.
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
  // For cuModuleLoadDataEx: an image whose variable has `bytes`. It is PTX text if the driver cannot compile it.
  const void* of(uint64_t bytes);

 private:
  const Driver& driver;
  std::map<uint64_t, std::vector<char>> images;  // by the size of their variable
};

}  // namespace vgpu::stub
