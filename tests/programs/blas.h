// Shared by the programs that use cuBLAS: checked calls, data of every type, and digests of results. Their output must be the same natively
// and in a session, suspended in the middle or not: cuBLAS computes the same bits for the same calls (its documentation, "Results
// reproducibility").
#pragma once

#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "program.h"

#define BLAS(call) checkBlas((call), #call, __FILE__, __LINE__)

inline void checkBlas(cublasStatus_t status, const char* call, const char* file, int line) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  std::fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cublasGetStatusName(status));
  std::exit(1);
}

class Blas {
 public:
  Blas() {
    cublasStatus_t status = cublasCreate(&handle);
    if (status == CUBLAS_STATUS_NOT_INITIALIZED) std::exit(notHere);
    BLAS(status);
  }
  ~Blas() { BLAS(cublasDestroy(handle)); }
  Blas(const Blas&) = delete;
  Blas& operator=(const Blas&) = delete;
  operator cublasHandle_t() const { return handle; }

 private:
  cublasHandle_t handle = nullptr;
};

// Small numbers, so that sums in half precision stay finite; complex types get both parts.
template <typename T>
T numberAt(size_t i) {
  return static_cast<T>(static_cast<float>(static_cast<int>(i * 2654435761u % 17) - 8) / 8);
}
template <>
inline signed char numberAt<signed char>(size_t i) {
  return static_cast<signed char>(i * 2654435761u % 17 - 8);
}
template <>
inline int numberAt<int>(size_t i) {
  return static_cast<int>(i * 2654435761u % 17) - 8;
}
template <>
inline cuComplex numberAt<cuComplex>(size_t i) {
  return {numberAt<float>(2 * i), numberAt<float>(2 * i + 1)};
}
template <>
inline cuDoubleComplex numberAt<cuDoubleComplex>(size_t i) {
  return {numberAt<double>(2 * i), numberAt<double>(2 * i + 1)};
}

template <typename T>
std::vector<T> numbers(size_t count, size_t first = 0) {
  std::vector<T> all(count);
  for (size_t i = 0; i < count; ++i) all[i] = numberAt<T>(first + i);
  return all;
}

inline void printDigest(const std::string& name, const void* bytes, size_t size) {
  uint64_t digest = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; ++i) digest = (digest ^ static_cast<const unsigned char*>(bytes)[i]) * 0x100000001b3;
  std::printf("%s %016llx\n", name.c_str(), static_cast<unsigned long long>(digest));
}

template <typename T>
void printDigest(const std::string& name, const DeviceArray<T>& array) {
  auto values = array.download();
  printDigest(name, values.data(), values.size() * sizeof(T));
}

template <typename T>
void printValue(const std::string& name, const T& value) {
  std::printf("%s ", name.c_str());
  for (size_t i = 0; i < sizeof value; ++i) std::printf("%02x", reinterpret_cast<const unsigned char*>(&value)[i]);
  std::printf("\n");
}
