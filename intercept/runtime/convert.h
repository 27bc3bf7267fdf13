// Between the runtime's names and the driver's for the same bits.
#pragma once
#include <cuda.h>
#include <driver_types.h>

#include <bit>

namespace vgpu::runtime {

/// A device address as the driver writes it.
inline CUdeviceptr toDevice(const void* address) { return std::bit_cast<CUdeviceptr>(address); }
inline void* toPointer(CUdeviceptr address) { return std::bit_cast<void*>(address); }

/// The same structure under the other interface's name. The two must have the same layout: the headers of CUDA define
/// one as a copy of the other wherever this is used, and the size is checked here.
template <class To, class From>
inline To* same(From* from) {
  static_assert(sizeof(To) == sizeof(From));
  return static_cast<To*>(static_cast<void*>(from));
}
template <class To, class From>
inline const To* same(const From* from) {
  static_assert(sizeof(To) == sizeof(From));
  return static_cast<const To*>(static_cast<const void*>(from));
}

/// The place for the driver to write a device address that the program receives as a pointer.
inline CUdeviceptr* addressOut(void** out) { return same<CUdeviceptr>(out); }

/// A launch in `stream`, which is the one of the configuration as its caller means it.
inline CUlaunchConfig toDriver(const cudaLaunchConfig_t& config, CUstream stream) {
  const dim3 &grid = config.gridDim, &block = config.blockDim;
  return {grid.x,
          grid.y,
          grid.z,
          block.x,
          block.y,
          block.z,
          static_cast<unsigned>(config.dynamicSmemBytes),
          stream,
          same<CUlaunchAttribute>(config.attrs),
          config.numAttrs};
}

/// Arrays have opaque types of different names and no layout at all.
template <class To>
inline To handle(void* from) {
  return static_cast<To>(from);
}
template <class To>
inline To handle(const void* from) {
  return static_cast<To>(const_cast<void*>(from));
}

}  // namespace vgpu::runtime
