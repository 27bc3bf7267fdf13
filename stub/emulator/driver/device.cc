#include "stub/emulator/driver/device.h"

#include <cstdio>
#include <cstring>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {

MemoryLease::MemoryLease(Device& device, uint64_t bytes) : bytes(bytes) {
  uint64_t used = device.used.load();
  do {
    if (bytes > device.totalBytes() - used) refuse(CUDA_ERROR_OUT_OF_MEMORY);
  } while (!device.used.compare_exchange_weak(used, used + bytes));
  lender = &device;
}

MemoryLease::~MemoryLease() {
  if (lender) lender->used.fetch_sub(bytes);
}

std::string Device::name() const { return "vgpu emulated device sm_" + std::to_string(architecture()); }

// The same in every run, different for each ordinal: "vgpu-emulated" and the ordinal.
CUuuid Device::uuid() const {
  CUuuid uuid{};
  std::memcpy(uuid.bytes, "vgpu-emulated", 13);
  uuid.bytes[15] = static_cast<char>(number);
  return uuid;
}

std::string Device::pciBusId() const {
  char text[16];
  std::snprintf(text, sizeof text, "0000:%02X:00.0", 0x10 + number);
  return text;
}

}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuDeviceGet(CUdevice* device, int ordinal) {
  return enterDriver([&](Driver& driver) {
    require(device != nullptr);
    *device = driver.device(ordinal).ordinal();
  });
}

CUresult CUDAAPI cuDeviceGetCount(int* count) {
  return enterDriver([&](Driver& driver) {
    require(count != nullptr);
    *count = driver.deviceCount();
  });
}

CUresult CUDAAPI cuDeviceGetName(char* name, int bytes, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(name != nullptr && bytes > 0);
    std::snprintf(name, static_cast<size_t>(bytes), "%s", driver.device(device).name().c_str());
  });
}

CUresult CUDAAPI cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(uuid != nullptr);
    *uuid = driver.device(device).uuid();
  });
}

CUresult CUDAAPI cuDeviceTotalMem_v2(size_t* bytes, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(bytes != nullptr);
    *bytes = driver.device(device).totalBytes();
  });
}

CUresult CUDAAPI cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(value != nullptr);
    *value = driver.device(device).attribute(attribute);
  });
}

CUresult CUDAAPI cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(major != nullptr && minor != nullptr);
    *major = driver.device(device).architecture() / 10;
    *minor = driver.device(device).architecture() % 10;
  });
}

CUresult CUDAAPI cuDeviceGetProperties(CUdevprop* properties, CUdevice ordinal) {
  return enterDriver([&](Driver& driver) {
    require(properties != nullptr);
    const Device& device = driver.device(ordinal);
    auto figure = [&](CUdevice_attribute attribute) { return device.attribute(attribute); };
    *properties = CUdevprop{
        .maxThreadsPerBlock = figure(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {figure(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X), figure(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y),
                          figure(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)},
        .maxGridSize = {figure(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X), figure(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y),
                        figure(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)},
        .sharedMemPerBlock = figure(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = figure(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = figure(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = figure(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = figure(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = figure(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = figure(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    };
  });
}

CUresult CUDAAPI cuDeviceGetPCIBusId(char* text, int bytes, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(text != nullptr && bytes > 0);
    std::string id = driver.device(device).pciBusId();
    require(static_cast<size_t>(bytes) > id.size());
    std::memcpy(text, id.c_str(), id.size() + 1);
  });
}

CUresult CUDAAPI cuDeviceGetByPCIBusId(CUdevice* device, const char* text) {
  return enterDriver([&](Driver& driver) {
    require(device != nullptr && text != nullptr);
    // The forms that the driver documents: domain:bus:device.function, domain:bus:device, bus:device.function.
    unsigned domain = 0, bus = 0, slot = 0, function = 0;
    if (std::sscanf(text, "%x:%x:%x.%x", &domain, &bus, &slot, &function) < 3) {
      domain = 0;
      require(std::sscanf(text, "%x:%x.%x", &bus, &slot, &function) == 3);
    }
    for (int i = 0; i < driver.deviceCount(); ++i) {
      if (domain == 0 && slot == 0 && function == 0 && bus == 0x10u + static_cast<unsigned>(i)) {
        *device = i;
        return CUDA_SUCCESS;
      }
    }
    return CUDA_ERROR_INVALID_DEVICE;
  });
}

CUresult CUDAAPI cuDeviceGetLuid(char*, unsigned*, CUdevice) {
  // Locally unique ids exist on Windows only (cuda.h).
  return enterDriver([](Driver&) { return CUDA_ERROR_NOT_SUPPORTED; });
}

CUresult CUDAAPI cuDeviceGetTexture1DLinearMaxWidth(size_t* elements, CUarray_format format, unsigned channels,
                                                    CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(elements != nullptr && format != 0 && (channels == 1 || channels == 2 || channels == 4));
    *elements =
        static_cast<size_t>(driver.device(device).attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH));
  });
}

CUresult CUDAAPI cuDeviceGetHostAtomicCapabilities(unsigned* capabilities, const CUatomicOperation* operations, unsigned count,
                                                   CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(count != 0 && capabilities != nullptr && operations != nullptr);
    for (unsigned i = 0; i < count; ++i) {
      require(operations[i] >= CU_ATOMIC_OPERATION_INTEGER_ADD && operations[i] <= CU_ATOMIC_OPERATION_FLOAT_MAX);
      capabilities[i] = 0;  // consistent with HOST_NATIVE_ATOMIC_SUPPORTED
    }
    driver.device(device);
  });
}

CUresult CUDAAPI cuDeviceGetExecAffinitySupport(int* supported, CUexecAffinityType type, CUdevice device) {
  return enterDriver([&](Driver& driver) {
    require(supported != nullptr && type == CU_EXEC_AFFINITY_TYPE_SM_COUNT);
    driver.device(device);
    *supported = 0;
  });
}

CUresult CUDAAPI cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget, CUflushGPUDirectRDMAWritesScope) {
  return enterDriver([](Driver&) { return CUDA_ERROR_NOT_SUPPORTED; });
}
