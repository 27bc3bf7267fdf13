// The driver's functions for a program that is linked only with the runtime, looked up as libraries do.
#pragma once

#include <cuda.h>

#include "program.h"

template <typename Entry>
Entry find(const char* name) {
  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  CHECK(cudaGetDriverEntryPointByVersion(name, &entry, 13000, cudaEnableDefault, &found));
  if (found == cudaDriverEntryPointSuccess) return reinterpret_cast<Entry>(entry);
  std::fprintf(stderr, "no %s\n", name);
  std::exit(1);
}

// The same without the runtime, which makes a context current if there is none; except in the first call.
inline void* findInDriver(const char* name) {
  using GetProcAddress = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);
  static const auto getProcAddress = find<GetProcAddress>("cuGetProcAddress");
  void* entry = nullptr;
  CUdriverProcAddressQueryResult found;
  if (getProcAddress(name, &entry, 13000, CU_GET_PROC_ADDRESS_DEFAULT, &found) == CUDA_SUCCESS && entry != nullptr) return entry;
  std::fprintf(stderr, "no %s\n", name);
  std::exit(1);
}

template <typename Entry>
Entry findInDriver(const char* name) {
  return reinterpret_cast<Entry>(findInDriver(name));
}

// A driver entry with the type of its namesake in cuda.h, and a call of it that must succeed.
#define DRIVER(name) findInDriver<decltype(&name)>(#name)
#define CALL(name, ...) check(findInDriver<decltype(&name)>(#name)(__VA_ARGS__), #name)

inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::exit(1);
}
