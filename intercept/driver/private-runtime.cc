// Libraries that require NVIDIA's own driver: most contain a copy of its runtime that could not be redirected to ours
// (docs/interposition.md). Many programs load such a library and never use it, so no message is printed until it asks the driver for a
// private table of NVIDIA's, which it does first. The compilers ask too, but work without it: no message for them.
#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "intercept/session/entry.h"

namespace {

// The file of the object that contains `code`.
std::string objectOf(const void* code) {
  Dl_info found{};
  bool known = dladdr(code, &found) != 0 && found.dli_fname != nullptr && *found.dli_fname != 0;
  return known ? found.dli_fname : "code of this program that was loaded from no file";
}

void nameOnce(const std::string& object) {
  // Never destroyed: static destructors may still call this.
  static auto& mutex = *new std::mutex;
  static auto& named = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (object.find("libnvrtc") != object.npos || object.find("libnvJitLink") != object.npos || !named.insert(object).second) return;
  fprintf(stderr,
          "vgpu: %s calls cuGetExportTable for private tables of NVIDIA's driver, which vgpu does not provide: its CUDA calls fail. If it "
          "is your code with the CUDA runtime linked in, link it with `nvcc -cudart shared` of CUDA 13 or keep its symbol table; a "
          "prebuilt library (cuFFT, ...) cannot be used yet\n",
          object.c_str());
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuGetExportTable(const void** ppExportTable, const CUuuid*) {
  nameOnce(objectOf(__builtin_return_address(0)));
  if (ppExportTable != nullptr) *ppExportTable = nullptr;
  return CUDA_ERROR_NOT_FOUND;
}

}  // extern "C"
