#include "stub/worker/shared-modules.h"

#include <algorithm>
#include <utility>

namespace vgpu::stub {

CUresult SharedModules::load(uint64_t library, const void* image, const Jit& jit, CUmodule& real) {
  auto loadAlone = [&] { return driver.cuModuleLoadDataEx(&real, image, jit.count, jit.options, jit.values); };
  if (library == 0) return loadAlone();
  auto [found, isNew] = libraries.try_emplace(library);
  Shared& shared = found->second;
  CUresult result = CUDA_SUCCESS;
  if (isNew) result = driver.cuLibraryLoadData(&shared.real, image, jit.options, jit.values, jit.count, nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) result = driver.cuLibraryGetModule(&real, shared.real);
  if (result == CUDA_SUCCESS) return std::exchange(shared.live[real], true) ? loadAlone() : CUDA_SUCCESS;
  if (!isNew) return result;
  if (shared.real != nullptr) driver.cuLibraryUnload(shared.real);
  libraries.erase(found);
  return result;
}

bool SharedModules::isShared(CUmodule real) const {
  return std::ranges::any_of(libraries, [real](auto& each) { return each.second.live.size() > 1 && each.second.live.contains(real); });
}

void SharedModules::forget(CUmodule real) {
  for (auto& [number, shared] : libraries) shared.live.erase(real);
  std::erase_if(libraries, [](auto& each) { return each.second.live.empty(); });
}

CUresult SharedModules::unload(CUmodule real) {
  auto found = std::ranges::find_if(libraries, [&](auto& each) { return each.second.live.contains(real); });
  if (found == libraries.end()) return driver.cuModuleUnload(real);
  auto& live = found->second.live;
  live[real] = false;
  if (std::ranges::any_of(live, [](auto& module) { return module.second; })) return CUDA_SUCCESS;
  const CUlibrary library = found->second.real;
  libraries.erase(found);
  return driver.cuLibraryUnload(library);
}

}  // namespace vgpu::stub
