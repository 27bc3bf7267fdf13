// Libraries that want NVIDIA's own driver: most have a copy of its runtime that could not be redirected to ours (docs/interposition.md).
// Many programs load some and never use them, so no message is printed when they are loaded; they first ask the driver for a private
// table of NVIDIA's, and the message is printed then. The compilers ask too, and do without.
#include <dlfcn.h>

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "intercept/session/entry.h"

namespace {

// The file of the object that `code` is in.
std::string objectOf(const void* code) {
  Dl_info found{};
  bool known = dladdr(code, &found) != 0 && found.dli_fname != nullptr && *found.dli_fname != 0;
  return known ? found.dli_fname : "a part of this program that is in no file";
}

void nameOnce(const std::string& object) {
  // Never destroyed: static destructors may still call.
  static auto& mutex = *new std::mutex;
  static auto& named = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (object.find("libnvrtc") != object.npos || object.find("libnvJitLink") != object.npos || !named.insert(object).second) return;
  fprintf(stderr,
          "vgpu: %s asks for private tables of NVIDIA's driver, which a session has not: its CUDA calls fail. If a CUDA runtime is "
          "linked into it, link it with `nvcc -cudart shared` of CUDA 13 or keep its symbol table; if it is not yours to link (cuDNN, "
          "cuFFT, ...), it cannot be used yet\n",
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
