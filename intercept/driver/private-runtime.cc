// Libraries with a copy of NVIDIA's runtime that could not be redirected to ours (docs/interposition.md). Many programs load some
// and never use them, so no message is printed when they are loaded; such a runtime first asks the driver for a private table of
// NVIDIA's, and the message is printed then.
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
  if (!named.insert(object).second) return;
  fprintf(stderr,
          "vgpu: %s has a CUDA runtime of its own inside, which wants NVIDIA's driver: its CUDA calls fail. Link it with "
          "`nvcc -cudart shared` of CUDA 13 or keep its symbol table; if it is not yours to link (cuBLAS, cuFFT, ...), it "
          "cannot be used yet\n",
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
