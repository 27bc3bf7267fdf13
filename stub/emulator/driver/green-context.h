// Green contexts: parts of a device's multiprocessors, in name. Kernels run where they always do; what the parts have is counted, and
// a cooperative launch must fit into its stream's.
//
// What a CUdevResource says beside its counts is a mask of multiprocessors, and the split that made it. A destroyed green context
// stays as long as one of its streams.
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
  std::shared_ptr<Context> context;  // the device's primary one
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
