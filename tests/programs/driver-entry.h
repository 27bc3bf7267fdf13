// The driver's functions for a program that is linked with the runtime only, as libraries get at them.
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

inline void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: error %d\n", what, result);
  std::exit(1);
}
