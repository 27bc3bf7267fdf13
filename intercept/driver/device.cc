// Devices: described once by the worker when the session opens; queries are served here.
#include <cstring>

#include "intercept/session/entry.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

// Runs `body` with the device's description. CUDA_ERROR_INVALID_DEVICE if there is none of that number.
template <typename Body>
CUresult withDevice(CUdevice device, Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    auto& devices = thread.session.devices;
    if (device < 0 || static_cast<size_t>(device) >= devices.size()) return CUDA_ERROR_INVALID_DEVICE;
    return body(devices[static_cast<size_t>(device)]);
  });
}

CUresult copyText(const std::string& text, char* out, int bytes) {
  if (out == nullptr || bytes <= 0) return CUDA_ERROR_INVALID_VALUE;
  size_t kept = std::min(text.size(), static_cast<size_t>(bytes) - 1);
  std::memcpy(out, text.data(), kept);
  out[kept] = 0;
  return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuInit(unsigned int flags) {
  if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
  return answerOf([] {
    Session::open();
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDriverGetVersion(int* version) {
  if (version == nullptr) return CUDA_ERROR_INVALID_VALUE;
  Session* session = Session::find();
  *version = session != nullptr ? session->driverVersion : CUDA_VERSION;
  return CUDA_SUCCESS;
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  if (device == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return withDevice(ordinal, [&](DeviceInfo&) {
    *device = ordinal;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (count == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<int>(thread.session.devices.size());
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetName(char* name, int len, CUdevice dev) {
  return withDevice(dev, [&](DeviceInfo& info) { return copyText(info.name, name, len); });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice dev) {
  return withDevice(dev, [&](DeviceInfo& info) -> CUresult {
    if (uuid == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *uuid = info.uuid;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice dev) {
  return withDevice(dev, [&](DeviceInfo& info) -> CUresult {
    if (bytes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *bytes = info.totalBytes;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetAttribute(int* pi, CUdevice_attribute attrib, CUdevice dev) {
  return withDevice(dev, [&](DeviceInfo& info) -> CUresult {
    if (pi == nullptr || attrib <= 0 || attrib >= CU_DEVICE_ATTRIBUTE_MAX) return CUDA_ERROR_INVALID_VALUE;
    *pi = info.attribute(attrib);
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetPCIBusId(char* pciBusId, int len, CUdevice dev) {
  return withDevice(dev, [&](DeviceInfo& info) { return copyText(info.pciBusId, pciBusId, len); });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* dev, const char* pciBusId) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (dev == nullptr || pciBusId == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto& devices = thread.session.devices;
    for (size_t i = 0; i < devices.size(); ++i) {
      if (strcasecmp(devices[i].pciBusId.c_str(), pciBusId) != 0) continue;
      *dev = static_cast<CUdevice>(i);
      return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

// Peers: no device of a session can access another's memory. Copies between them work all the same.
VGPU_EXPORT CUresult CUDAAPI cuDeviceCanAccessPeer(int* canAccessPeer, CUdevice dev, CUdevice peerDev) {
  return withDevice(dev, [&](DeviceInfo&) {
    return withDevice(peerDev, [&](DeviceInfo&) -> CUresult {
      if (canAccessPeer == nullptr) return CUDA_ERROR_INVALID_VALUE;
      *canAccessPeer = 0;
      return CUDA_SUCCESS;
    });
  });
}

VGPU_EXPORT CUresult CUDAAPI cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attrib, CUdevice srcDevice,
                                                     CUdevice dstDevice) {
  if (srcDevice == dstDevice) return CUDA_ERROR_INVALID_DEVICE;
  bool known = attrib >= CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK &&
               attrib <= CU_DEVICE_P2P_ATTRIBUTE_ONLY_PARTIAL_NATIVE_ATOMIC_SUPPORTED;
  return known ? cuDeviceCanAccessPeer(value, srcDevice, dstDevice) : CUDA_ERROR_INVALID_VALUE;
}

}  // extern "C"
