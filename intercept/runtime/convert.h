// Conversions between the runtime's and the driver's types for the same bits.
#pragma once
#include <cuda.h>
#include <driver_types.h>

#include <bit>

namespace vgpu::runtime {

/// A device address as the driver writes it.
inline CUdeviceptr toDevice(const void* address) { return std::bit_cast<CUdeviceptr>(address); }
inline void* toPointer(CUdeviceptr address) { return std::bit_cast<void*>(address); }

/// The same structure under the other interface's name. The layouts must be equal: wherever this is used, CUDA's headers define one
/// structure as a copy of the other. Only the size is checked here.
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

/// `out` as the driver's output parameter for a device address that the program receives as a pointer.
inline CUdeviceptr* addressOut(void** out) { return same<CUdeviceptr>(out); }

/// The driver's form of `config`, with `stream`, which is the configuration's stream in the caller's default-stream flavour.
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

/// Array handles are pointers to incomplete types, which have different names in the two interfaces.
template <class To>
inline To handle(void* from) {
  return static_cast<To>(from);
}
template <class To>
inline To handle(const void* from) {
  return static_cast<To>(const_cast<void*>(from));
}

}  // namespace vgpu::runtime
