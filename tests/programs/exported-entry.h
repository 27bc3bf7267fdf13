// The driver's entries by their exported names, as an old program finds them, every version under its own name; and checks of their
// results. Include it before anything that includes cuda.h.
#pragma once

#include <dlfcn.h>

#define __CUDA_API_VERSION_INTERNAL  // declares every version under its own name
#include <cuda.h>

#include "program.h"

template <typename Entry>
Entry exported(const char* name) {
  static void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void* entry = driver == nullptr ? nullptr : dlsym(driver, name);
  if (entry == nullptr) {
    std::fprintf(stderr, "libcuda.so.1 does not export %s\n", name);
    std::exit(1);
  }
  return reinterpret_cast<Entry>(entry);
}
#define ENTRY(name) exported<decltype(&name)>(#name)

inline bool gives(const char* what, CUresult result, CUresult expected) {
  if (result == expected) return true;
  std::fprintf(stderr, "%s gave %d, expected %d\n", what, static_cast<int>(result), static_cast<int>(expected));
  return false;
}
#define GIVES(expected, name, ...) gives(#name, ENTRY(name)(__VA_ARGS__), expected)
#define WORKS(name, ...) GIVES(CUDA_SUCCESS, name, __VA_ARGS__)
