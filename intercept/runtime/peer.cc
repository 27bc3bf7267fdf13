// Access between the devices of one process, and sharing of memory and events between processes.
#include <cstring>

#include "intercept/runtime/convert.h"
#include "intercept/runtime/rows.h"

namespace vgpu::runtime {
namespace {

/// The driver identifies a peer by a context: the runtime uses the device's primary context.
template <class Use>
cudaError_t withPeer(int device, Use use) {
  if (cudaError_t error = holdDevice(device); error != cudaSuccess) return error;
  return answer(use(contextOf(device)));
}

/// Checks first whether access is possible: a device is no peer of itself, for instance.
cudaError_t enablePeer(int device, unsigned flags) {
  int own, can;
  if (cudaError_t error = currentDevice(own); error != cudaSuccess) return error;
  if (CUresult result = cuDeviceCanAccessPeer(&can, own, device); result != CUDA_SUCCESS) return answer(result);
  if (can == 0) return cudaErrorPeerAccessUnsupported;
  return withPeer(device, [&](CUcontext peer) { return cuCtxEnablePeerAccess(peer, flags); });
}

template <class Driver, class Runtime>
Driver toDriver(const Runtime& from) {
  Driver to;
  static_assert(sizeof to == sizeof from);
  memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace
}  // namespace vgpu::runtime

using namespace vgpu::runtime;

RUNTIME_DEVICE(cudaDeviceCanAccessPeer, (int* can, int device, int peer), cuDeviceCanAccessPeer(can, device, peer))
RUNTIME_DEVICE(cudaDeviceGetP2PAttribute, (int* value, cudaDeviceP2PAttr attribute, int from, int to),
               cuDeviceGetP2PAttribute(value, static_cast<CUdevice_P2PAttribute>(attribute), from, to))
RUNTIME(cudaDeviceEnablePeerAccess, (int peer, unsigned flags), enablePeer(peer, flags))
RUNTIME(cudaDeviceDisablePeerAccess, (int peer),
        withPeer(peer, [](CUcontext context) { return cuCtxDisablePeerAccess(context); }))

RUNTIME(cudaIpcGetEventHandle, (cudaIpcEventHandle_t * shared, cudaEvent_t event),
        cuIpcGetEventHandle(same<CUipcEventHandle>(shared), event))
RUNTIME(cudaIpcOpenEventHandle, (cudaEvent_t * event, cudaIpcEventHandle_t shared),
        cuIpcOpenEventHandle(event, toDriver<CUipcEventHandle>(shared)))
RUNTIME(cudaIpcGetMemHandle, (cudaIpcMemHandle_t * shared, void* memory),
        cuIpcGetMemHandle(same<CUipcMemHandle>(shared), toDevice(memory)))
RUNTIME(cudaIpcOpenMemHandle, (void** memory, cudaIpcMemHandle_t shared, unsigned flags),
        cuIpcOpenMemHandle(addressOut(memory), toDriver<CUipcMemHandle>(shared), flags))
RUNTIME(cudaIpcCloseMemHandle, (void* memory), cuIpcCloseMemHandle(toDevice(memory)))
