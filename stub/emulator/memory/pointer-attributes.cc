// cuPointerGetAttribute and similar entries: properties of an address.
#include <cstring>

#include "stub/emulator/driver/driver.h"

namespace vgpu::emulator::api {
namespace {

template <class Value>
void put(void* data, Value value) {
  std::memcpy(data, &value, sizeof value);
}

CUmemorytype memoryType(const Mapping& mapping) {
  bool host = mapping.kind == MappingKind::registered || mapping.kind == MappingKind::hostAllocation;
  return host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

// Stores the attribute of an address inside `mapping`; refuses with CUDA_ERROR_INVALID_VALUE if it has none.
void attributeOf(const Mapping& mapping, CUdeviceptr address, CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return put(data, mapping.context ? mapping.context->handle : CUcontext{nullptr});
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, memoryType(mapping));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return put(data, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      require(mapping.hostKind());
      return put(data, asHostPointer(address));
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return put(data, int{0});
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put(data, static_cast<unsigned long long>(mapping.bufferId));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return put(data, int{mapping.kind == MappingKind::managed});
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, mapping.device->ordinal());
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put(data, int{0});
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put(data, CUdeviceptr{mapping.base});
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
      return put(data, size_t{mapping.bytes});
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return put(data, int{1});
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put(data,
                 static_cast<unsigned long long>(mapping.physical ? mapping.physical->properties.requestedHandleTypes
                                                                  : CU_MEM_HANDLE_TYPE_NONE));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return put(data, int{0});
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, mapping.writers   ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                       : mapping.readers ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READ
                                         : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, mapping.pool);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return put(data, size_t{mapping.bytes});
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return put(data, CUdeviceptr{mapping.base});
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      return put(data, static_cast<unsigned long long>(mapping.bufferId));
    default:
      refuse(CUDA_ERROR_INVALID_VALUE);
  }
}

// The values that cuPointerGetAttributes stores for an unknown address: empty, and no error (cuda.h).
void emptyAttribute(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      return put(data, int{0});
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return put(data, int{-2});  // CU_DEVICE_INVALID
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return put(data, int{0});
    default:
      return put(data, uint64_t{0});
  }
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;

CUresult CUDAAPI cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address) {
  return enterContext([&](Context& context) {
    require(data != nullptr);
    std::optional<Mapping> mapping = context.driver.space.find(address);
    require(mapping.has_value());
    attributeOf(*mapping, address, attribute, data);
  });
}

CUresult CUDAAPI cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** data,
                                        CUdeviceptr address) {
  return enterContext([&](Context& context) {
    require(count != 0 && attributes != nullptr && data != nullptr);
    std::optional<Mapping> mapping = context.driver.space.find(address);
    for (unsigned i = 0; i < count; ++i) {
      require(data[i] != nullptr);
      bool missing = !mapping || (attributes[i] == CU_POINTER_ATTRIBUTE_HOST_POINTER && !mapping->hostKind());
      if (missing) {
        emptyAttribute(attributes[i], data[i]);
      } else {
        attributeOf(*mapping, address, attributes[i], data[i]);
      }
    }
  });
}

CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr address) {
  return enterContext([&](Context& context) {
    require(value != nullptr && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS);
    require(context.driver.space.find(address).has_value());
  });
}
