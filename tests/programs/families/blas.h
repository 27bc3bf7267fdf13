// cuBLAS handles, each with its own stream and settings. The library is opened by name, because it may be missing natively. With the
// recording library of tests/libraries results depend on all arguments and on the handle's settings, but not on the data.
#pragma once

#include <dlfcn.h>

#include "place.h"

#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>

namespace families {

inline void* blasEntry(const char* name) {
  static void* const library = dlopen("libcublas.so.13", RTLD_NOW);
  return library == nullptr ? nullptr : dlsym(library, name);
}

template <typename Entry, typename... Arguments>
void callBlas(const char* name, const Arguments&... arguments) {
  const cublasStatus_t status = reinterpret_cast<Entry>(blasEntry(name))(arguments...);
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s: status %d\n", name, status);
  std::exit(1);
}
#define BLAS(name, ...) callBlas<decltype(&name)>(#name, __VA_ARGS__)

// Whether cuBLAS is present: with the emulated device only if a folder is given.
inline bool hasBlas() {
  static const bool has = [] {
    cublasHandle_t handle = nullptr;
    auto* create = reinterpret_cast<decltype(&cublasCreate_v2)>(blasEntry("cublasCreate_v2"));
    if (create == nullptr || create(&handle) != CUBLAS_STATUS_SUCCESS) return std::getenv("VGPU_LIBRARIES") != nullptr;
    BLAS(cublasDestroy_v2, handle);
    return true;
  }();
  return has;
}

inline bool blas(const Place& place) {
  static Few few;
  const Few::Entered entered(few);
  if (!hasBlas()) return true;
  constexpr int count = 200;
  std::vector<float> x(count), y(count, 1);
  for (int i = 0; i < count; ++i) x[i] = static_cast<float>(static_cast<int>(place.seed + i) % 8);
  const float factor = 1 + static_cast<float>(place.seed % 5);
  DeviceArray<float> dx(x), dy(y);
  float dots[2]{};
  cublasHandle_t handle;
  cudaStream_t stream;
  cublasMath_t math;
  BLAS(cublasCreate_v2, &handle);
  BLAS(cublasSetStream_v2, handle, place.stream);
  BLAS(cublasSetMathMode, handle, CUBLAS_PEDANTIC_MATH);
  BLAS(cublasSaxpy_v2, handle, count, &factor, dx, 1, dy, 1);
  BLAS(cublasSaxpy_v2, handle, count, &factor, dx, 1, dy, 1);
  for (float& dot : dots) BLAS(cublasSdot_v2, handle, count, dx, 1, dy, 1, &dot);
  BLAS(cublasGetStream_v2, handle, &stream);
  BLAS(cublasGetMathMode, handle, &math);
  BLAS(cublasDestroy_v2, handle);
  bool ok = EXPECT(std::memcmp(&dots[0], &dots[1], sizeof(float)) == 0) & EXPECT(stream == place.stream);
  if (std::getenv("VGPU_LIBRARIES") != nullptr) return ok;
  float dot = 0;
  for (int i = 0; i < count; ++i) dot += x[i] * (1 + 2 * factor * x[i]);
  return ok & EXPECT(math == CUBLAS_PEDANTIC_MATH) & EXPECT(dots[0] == dot);
}

}  // namespace families
#else
namespace families {
inline bool blas(const Place&) { return true; }
}  // namespace families
#endif
