// For programs that use managed memory.
#pragma once

#include "program.h"

// Whether the device and the host may access managed memory concurrently; features that depend on it are absent otherwise.
inline bool isConcurrent(int device = 0) {
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, device));
  return value != 0;
}
