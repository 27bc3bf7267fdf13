// For programs with two devices that can be peers.
#pragma once

#include "program.h"

inline bool devicesReachEachOther() {
  int devices = 0, there = 0, back = 0;
  CHECK(cudaGetDeviceCount(&devices));
  if (devices < 2) return false;
  CHECK(cudaDeviceCanAccessPeer(&there, 0, 1));
  CHECK(cudaDeviceCanAccessPeer(&back, 1, 0));
  return there != 0 && back != 0;
}
