// Multiprocessors as a resource: queried, split, and combined into a descriptor from which a green context is made.
//
// The driver's private bytes of a CUdevResource are the client's here, and say where the resource comes from. So the program's structures
// stay valid over a suspend: the worker splits its driver's resource again when a green context is made.
//
// Any thread; `mutex` is a leaf lock. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <mutex>
#include <optional>

#include "intercept/session/kinds/green-context.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Thread;

// The functions implement the driver's entries; the entries have checked pointers and devices.
class GreenResources {
 public:
  CUresult ofDevice(Thread& thread, unsigned device, CUdevResource* resource, CUdevResourceType type);
  CUresult ofContext(Thread& thread, uint64_t context, CUdevResource* resource, CUdevResourceType type);
  CUresult ofGreen(Thread& thread, uint64_t green, CUdevResource* resource, CUdevResourceType type);
  // `result` and `remaining` may be null.
  CUresult split(Thread& thread, CUdevResource* result, unsigned* count, const CUdevResource* input, CUdevResource* remaining,
                 unsigned flags, unsigned least);
  CUresult describe(Thread& thread, CUdevResourceDesc* descriptor, const CUdevResource* resources, unsigned count);
  // All resources of a device: the meaning of a missing descriptor in cuGreenCtxCreate.
  CUresult describeDevice(Thread& thread, unsigned device, ResourceDescriptorState& descriptor);

 private:
  CUresult askDevice(Thread& thread, unsigned device, Multiprocessors& has);

  std::mutex mutex;
  // Those of whole devices, as the worker first reported them: the virtual GPU keeps them on whatever node it is resumed.
  std::array<std::optional<Multiprocessors>, maxDevices> devices;
  std::atomic<uint64_t> splits{0};  // number of splits; numbers each split
};

}  // namespace vgpu::client
