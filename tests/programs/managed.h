// For programs of managed memory.
#pragma once

#include "program.h"

// Whether the device and the host may access managed memory at the same time; what is particular to that is not there else.
inline bool isConcurrent(int device = 0) {
  int value = 0;
  CHECK(cudaDeviceGetAttribute(&value, cudaDevAttrConcurrentManagedAccess, device));
  return value != 0;
}
