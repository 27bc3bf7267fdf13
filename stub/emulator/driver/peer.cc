// Access of one device's kernels to another device's memory. All emulated devices are peers of each other, or (peers=0) none.
#include "stub/emulator/driver/driver.h"

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return enterDriver([&](Driver& driver) {
    require(can != nullptr);
    const bool areTwo = &driver.device(device) != &driver.device(peer);
    *can = areTwo && driver.settings.arePeers;
  });
}

CUresult CUDAAPI cuCtxEnablePeerAccess(CUcontext handle, unsigned flags) {
  return enterContext([&](Context& context) {
    require(flags == 0);
    std::shared_ptr<Context> peer = context.driver.contexts.get(handle);
    peer->check();
    uint64_t bit = peer->device.bit();
    if (peer.get() == &context) refuse(CUDA_ERROR_INVALID_CONTEXT);
    if (&peer->device == &context.device || !context.driver.settings.arePeers) refuse(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    if (context.peers.fetch_or(bit) & bit) refuse(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
  });
}

CUresult CUDAAPI cuCtxDisablePeerAccess(CUcontext handle) {
  return enterContext([&](Context& context) {
    uint64_t bit = context.driver.contexts.get(handle)->device.bit();
    bool own = bit == context.device.bit();
    if (own || !(context.peers.fetch_and(~bit) & bit)) refuse(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED);
  });
}

CUresult CUDAAPI cuDeviceGetP2PAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count,
                                                  CUdevice from, CUdevice to) {
  constexpr unsigned widths = CU_ATOMIC_CAPABILITY_REDUCTION | CU_ATOMIC_CAPABILITY_SCALAR_32 | CU_ATOMIC_CAPABILITY_SCALAR_64;
  constexpr unsigned ofIntegers = widths | CU_ATOMIC_CAPABILITY_SIGNED | CU_ATOMIC_CAPABILITY_UNSIGNED;
  return enterDriver([&](Driver& driver) {
    require(count != 0 && capabilities != nullptr && operations != nullptr);
    if (&driver.device(from) == &driver.device(to)) refuse(CUDA_ERROR_INVALID_DEVICE);
    for (unsigned i = 0; i < count; ++i) {
      require(operations[i] >= CU_ATOMIC_OPERATION_INTEGER_ADD && operations[i] <= CU_ATOMIC_OPERATION_FLOAT_MAX);
      bool isFloat = operations[i] >= CU_ATOMIC_OPERATION_FLOAT_ADD;
      capabilities[i] = !isFloat ? ofIntegers : operations[i] == CU_ATOMIC_OPERATION_FLOAT_ADD ? widths : 0;
    }
  });
}

CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to) {
  return enterDriver([&](Driver& driver) {
    require(value != nullptr);
    if (&driver.device(from) == &driver.device(to)) refuse(CUDA_ERROR_INVALID_DEVICE);
    switch (attribute) {
      case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK:
        *value = 0;
        return;
      case CU_DEVICE_P2P_ATTRIBUTE_ACCESS_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
      case CU_DEVICE_P2P_ATTRIBUTE_CUDA_ARRAY_ACCESS_SUPPORTED:
        *value = driver.settings.arePeers;
        return;
      case CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED:
        *value = 0;
        return;
      default:
        refuse(CUDA_ERROR_INVALID_VALUE);
    }
  });
}
