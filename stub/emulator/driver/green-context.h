// Green contexts: sets of a device's multiprocessors, by bookkeeping only. Kernels run as always; the multiprocessors are counted, and a
// cooperative launch must fit into those of its stream's green context.
//
// The private part of a CUdevResource is a mask of multiprocessors, and the split that made it. A destroyed green context stays until its
// last stream is destroyed.
#pragma once

#include <array>
#include <atomic>
#include <bitset>
#include <memory>
#include <vector>

#include "stub/emulator/driver/context.h"

namespace vgpu::emulator::api {

constexpr size_t mostProcessors = 256;
using Processors = std::bitset<mostProcessors>;

struct GreenContext {
  std::shared_ptr<Context> context;  // the device's primary context
  Processors processors;
  uint64_t id = 0;
  CUgreenCtx handle = nullptr;
  std::atomic<bool> alive{true};
};

struct ResourceDescription {
  int device = 0;
  Processors processors;
  CUdevResourceDesc handle = nullptr;
};

}  // namespace vgpu::emulator::api
