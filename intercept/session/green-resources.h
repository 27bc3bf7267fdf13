// Multiprocessors as a resource: asked for, split, and gathered in a descriptor of which a green context is made.
//
// The bytes of a CUdevResource that are the driver's own are the client's here, and say where the resource comes from. So the
// program's structures stay valid over a suspend: the worker splits its driver's resource again, when a green context is made.
//
// Any thread; `mutex` is a leaf. All of it stays in the program's process over a suspend.
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

// The functions are the driver's entries, of pointers that are not null and of devices that there are.
class GreenResources {
 public:
  CUresult ofDevice(Thread& thread, unsigned device, CUdevResource* resource, CUdevResourceType type);
  CUresult ofContext(Thread& thread, uint64_t context, CUdevResource* resource, CUdevResourceType type);
  CUresult ofGreen(Thread& thread, uint64_t green, CUdevResource* resource, CUdevResourceType type);
  // `result` and `remaining` may be null.
  CUresult split(Thread& thread, CUdevResource* result, unsigned* count, const CUdevResource* input, CUdevResource* remaining,
                 unsigned flags, unsigned least);
  CUresult describe(Thread& thread, CUdevResourceDesc* descriptor, const CUdevResource* resources, unsigned count);
  // All that a device has: what no descriptor means for cuGreenCtxCreate.
  CUresult describeDevice(Thread& thread, unsigned device, ResourceDescriptorState& descriptor);

 private:
  CUresult askDevice(Thread& thread, unsigned device, Multiprocessors& has);

  std::mutex mutex;
  // Of whole devices, as the worker reported them first: the virtual GPU keeps them on whatever node it is resumed.
  std::array<std::optional<Multiprocessors>, maxDevices> devices;
  std::atomic<uint64_t> splits{0};  // each has a number
};

}  // namespace vgpu::client
