#include "stub/worker/shared-modules.h"

#include <algorithm>
#include <utility>

namespace vgpu::stub {

// A module that is loaded again has stayed in the driver: gives the variables that it does not share their initial values, copied from a
// fresh load.
CUresult SharedModules::initialize(CUmodule real, const void* image, const std::set<std::string>& variables, const Jit& jit) const {
  CUmodule fresh = nullptr;
  CUresult result = driver.cuModuleLoadDataEx(&fresh, image, jit.count, jit.options, jit.values);
  if (result != CUDA_SUCCESS) return result;
  for (auto& name : variables) {
    CUdeviceptr to = 0, from = 0;
    size_t bytes = 0;
    unsigned managed = 0;
    if (driver.cuModuleGetGlobal_v2(&to, &bytes, real, name.c_str()) == CUDA_ERROR_NOT_FOUND) continue;
    result = driver.cuModuleGetGlobal_v2(&from, &bytes, fresh, name.c_str());
    if (result == CUDA_SUCCESS) result = driver.cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, to);
    if (result == CUDA_SUCCESS && managed == 0) result = driver.cuMemcpyDtoD_v2(to, from, bytes);
    if (result != CUDA_SUCCESS) break;
  }
  if (result == CUDA_SUCCESS) result = driver.cuStreamSynchronize(nullptr);
  driver.cuModuleUnload(fresh);
  return result;
}

CUresult SharedModules::load(uint64_t library, const void* image, const std::set<std::string>& variables, const Jit& jit,
                             CUmodule& real) {
  auto loadAlone = [&] { return driver.cuModuleLoadDataEx(&real, image, jit.count, jit.options, jit.values); };
  if (library == 0) return loadAlone();
  auto [found, isNew] = libraries.try_emplace(library);
  Shared& shared = found->second;
  CUresult result = CUDA_SUCCESS;
  if (isNew) result = driver.cuLibraryLoadData(&shared.real, image, jit.options, jit.values, jit.count, nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) result = driver.cuLibraryGetModule(&real, shared.real);
  if (result == CUDA_SUCCESS) {
    if (isNew) shared.first = real;
    auto [module, isNewHere] = shared.live.try_emplace(real, true);
    if (!isNewHere && std::exchange(module->second, true)) return loadAlone();
    if (isNewHere) return CUDA_SUCCESS;
    shared.isTorn = true;
    return initialize(real, image, variables, jit);
  }
  if (!isNew) return result;
  if (shared.real != nullptr) driver.cuLibraryUnload(shared.real);
  libraries.erase(found);
  return result;
}

bool SharedModules::isTorn(CUmodule real) const {
  return std::ranges::any_of(libraries, [real](auto& each) { return each.second.isTorn && each.second.live.contains(real); });
}

void SharedModules::forget(CUmodule real) {
  for (auto& [number, shared] : libraries)
    if (shared.live.erase(real) > 0) shared.isTorn |= real == shared.first;
  std::erase_if(libraries, [](auto& each) { return each.second.live.empty(); });
}

CUresult SharedModules::unload(CUmodule real) {
  auto found = std::ranges::find_if(libraries, [&](auto& each) { return each.second.live.contains(real); });
  if (found == libraries.end()) return driver.cuModuleUnload(real);
  Shared& shared = found->second;
  shared.live[real] = false;
  shared.isTorn |= real == shared.first;
  if (std::ranges::any_of(shared.live, [](auto& module) { return module.second; })) return CUDA_SUCCESS;
  const CUlibrary library = shared.real;
  libraries.erase(found);
  return driver.cuLibraryUnload(library);
}

}  // namespace vgpu::stub
