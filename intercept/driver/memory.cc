// Memory: the client's arenas decide allocations and serve queries about pointers.
#include "intercept/driver/pointer.h"
#include "intercept/session/memory/physical-properties.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

uint64_t contextOfModule(Session& session, uint64_t module) {
  auto* entry = session.handles.find<api::Kind::MODULE>(module);
  return entry == nullptr ? 0 : entry->context.load();
}

template <typename T>
CUresult put(void* data, T value) {
  *static_cast<T*>(data) = value;
  return CUDA_SUCCESS;
}

// Whether cuIpcGetMemHandle accepts the allocation.
bool canBeShared(Session& session, const PointerInfo& info) {
  return info.type == CU_MEMORYTYPE_DEVICE && !info.managed && session.memory.findDevice(info.start) &&
         session.memory.poolOf(info.start) == nullptr && !session.shared.isTaken(info.start);
}

// What cuPointerGetAttributes returns for memory that is not CUDA's: zeros, and -2 as the ordinal.
void clearAttribute(CUpointer_attribute attribute, void* data) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: put(data, -2); break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
    case CU_POINTER_ATTRIBUTE_MAPPED:
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: put(data, 0u); break;
    default: put<unsigned long long>(data, 0); break;
  }
}

}  // namespace

std::optional<PointerInfo> vgpu::client::findPointer(Thread& thread, uint64_t pointer) {
  Session& session = thread.session;
  if (auto range = session.memory.findDevice(pointer)) {
    if (session.memory.isEnding(range->address)) return std::nullopt;
    return PointerInfo{CU_MEMORYTYPE_DEVICE, static_cast<unsigned>((pointer - deviceArenaBase) / deviceArenaBytes),
                       range->address, range->asked, session.managed.find(pointer).has_value(), range->owner};
  }
  if (auto mapped = session.virtualMemory.find(pointer)) {
    const unsigned access = mapped->access[thread.device()];
    const bool isReached = access != CU_MEM_ACCESS_FLAGS_PROT_NONE;
    return PointerInfo{.type = mapped->isHosts ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, .device = mapped->device,
                       .start = mapped->address, .bytes = mapped->bytes, .id = mapped->id, .mapped = mapped,
                       .hostFlags = CU_MEMHOSTALLOC_PORTABLE, .isReached = isReached, .isHostPointer = isReached,
                       .access = access};
  }
  auto ofHost = [&](const HostAllocation& host, bool isReached) {
    return PointerInfo{.type = CU_MEMORYTYPE_HOST, .device = handleDevice(host.context), .start = host.address,
                       .bytes = host.bytes, .managed = host.kind == HostKind::managed, .context = host.context,
                       .hostKind = host.kind, .hostFlags = host.flags, .isReached = isReached,
                       .isHostPointer = host.kind != HostKind::managed && host.kind != HostKind::pooled};
  };
  if (auto host = session.memory.findHost(pointer); host && !session.memory.isEnding(host->address))
    return ofHost(*host, host->kind != HostKind::pooled || session.memory.isReached(host->address, thread.device()));
  if (auto host = session.memory.findRegistered(pointer, false))
    return ofHost(*host, session.memory.findRegistered(pointer, true).has_value());
  if (auto variable = session.variables.at(pointer))
    return PointerInfo{CU_MEMORYTYPE_DEVICE, handleDevice(variable->module), variable->address, variable->bytes,
                       session.managed.find(pointer).has_value(), contextOfModule(session, variable->module), variable->handle};
  return std::nullopt;
}

CUresult PointerInfo::accessOf(const Session& session, const CUmemLocation& location, unsigned long long* flags) const {
  const bool isHost = isOfHost(location);
  const bool isDevice = location.type == CU_MEM_LOCATION_TYPE_DEVICE && session.hasDevice(location.id);
  if (!isHost && !isDevice) return CUDA_ERROR_INVALID_DEVICE;
  *flags = isHost ? static_cast<unsigned>(mapped->hostAccess) : unsigned{mapped->access[static_cast<size_t>(location.id)]};
  return CUDA_SUCCESS;
}

CUresult vgpu::client::pointerAttribute(Session& session, const PointerInfo& info, uint64_t pointer,
                                        CUpointer_attribute attribute, void* data) {
  const bool isTouchable = info.mapped ? info.mapped->hostAccess != CU_MEM_ACCESS_FLAGS_PROT_NONE
                                       : info.type == CU_MEMORYTYPE_HOST || info.managed;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT: return put(data, fromWire<CUcontext>(info.context));
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return put(data, static_cast<unsigned>(info.managed ? CU_MEMORYTYPE_DEVICE : info.type));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      if ((info.mapped || info.hostKind == HostKind::pooled) && !info.isReached) return CUDA_ERROR_INVALID_VALUE;
      return put<CUdeviceptr>(data, pointer);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      if (!isTouchable) return CUDA_ERROR_INVALID_VALUE;
      return put(data, fromWire<void*>(pointer));
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      if (info.mapped) return put<unsigned long long>(data, info.mapped->memory);
      [[fallthrough]];
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
      return put<unsigned long long>(data, info.id != 0 ? info.id : session.memory.idOf(info.start));
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: return put(data, static_cast<unsigned>(info.managed));
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return put(data, static_cast<int>(info.device));
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return put<CUdeviceptr>(data, info.start);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return put<size_t>(data, info.bytes);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
      return put<CUdeviceptr>(data, info.mapped ? info.mapped->reserved.address : info.start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return put<size_t>(data, info.mapped ? info.mapped->reserved.bytes : info.bytes);
    case CU_POINTER_ATTRIBUTE_MAPPED: return put(data, 1u);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return put<unsigned>(data, info.managed || session.memory.isSynchronizing(pointer));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return put<unsigned>(data, canBeShared(session, info));
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE: return put(data, 0u);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return put<unsigned long long>(data, info.mapped ? static_cast<unsigned>(info.mapped->exportable) : 0);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS: return put(data, info.access);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return put(data, session.memory.poolOf(info.start));
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS: return CUDA_ERROR_NOT_SUPPORTED;  // these need a kernel module on the host
    default: return CUDA_ERROR_INVALID_VALUE;
  }
}

extern "C" {

VGPU_EXPORT CUresult CUDAAPI cuMemAllocPitch_v2(CUdeviceptr* dptr, size_t* pPitch, size_t WidthInBytes, size_t Height,
                                                unsigned int ElementSizeBytes) {
  return enter([&](Thread& thread) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    bool elementFits = ElementSizeBytes == 4 || ElementSizeBytes == 8 || ElementSizeBytes == 16;
    if (dptr == nullptr || pPitch == nullptr || WidthInBytes == 0 || Height == 0 || !elementFits) return CUDA_ERROR_INVALID_VALUE;
    auto unit = static_cast<uint64_t>(thread.session.devices[thread.device()].attribute(
        CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT));
    uint64_t pitch = roundUp(WidthInBytes, std::max<uint64_t>(512, unit));
    if (pitch * Height == 0) return CUDA_ERROR_INVALID_VALUE;  // overflow to 0, as natively
    if (Height > deviceArenaBytes / pitch) return CUDA_ERROR_OUT_OF_MEMORY;
    uint64_t address = 0;
    if (CUresult error = thread.session.memory.allocate(thread, thread.device(), pitch * Height, thread.owner(), address)) return error;
    *dptr = address;
    *pPitch = pitch;
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemFree_v2(CUdeviceptr dptr) {
  if (dptr == 0 && enterContext([](Thread&) { return CUDA_SUCCESS; }) == CUDA_ERROR_INVALID_CONTEXT) return CUDA_SUCCESS;
  return enter([&](Thread& thread) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    SharedObjects& shared = thread.session.shared;
    if (shared.isTaken(dptr))
      return shared.isTakenOfPool(dptr) ? shared.closeMemory(thread, dptr, true) : CUDA_ERROR_INVALID_VALUE;
    if (auto ofGraph = thread.session.graphMemories.find(dptr)) {
      if (CUresult error = synchronizeDevice(thread, ofGraph->device)) return error;
      return thread.session.graphMemories.free(dptr) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    auto host = thread.session.memory.findHost(dptr);
    if (host && (host->kind == HostKind::managed || host->kind == HostKind::pooled))
      return thread.session.memory.freeHost(thread, dptr);
    return thread.session.memory.free(thread, dptr);
  });
}

VGPU_EXPORT CUresult CUDAAPI cuMemGetInfo_v2(size_t* free, size_t* total) {
  return enter([&](Thread& thread) -> CUresult {
    Call<api::Cuda::MemGetInfoParams> frame(thread, api::Method::memGetInfo);
    if (CUresult error = frame.call()) return error;
    auto known = frame.results<api::Cuda::MemGetInfoResults>();
    if (total != nullptr) *total = known.getTotal();
    if (free != nullptr) *free = std::min(known.getFree() + thread.session.memory.freeBytes(thread, thread.device()), known.getTotal());
    return CUDA_SUCCESS;
  });
}

VGPU_EXPORT CUresult CUDAAPI cuPointerGetAttributes(unsigned int numAttributes, CUpointer_attribute* attributes, void** data,
                                                    CUdeviceptr ptr) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (attributes == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto info = findPointer(thread, ptr);
    for (unsigned i = 0; i < numAttributes; ++i)
      if (!info || pointerAttribute(thread.session, *info, ptr, attributes[i], data[i]) != CUDA_SUCCESS)
        clearAttribute(attributes[i], data[i]);
    return CUDA_SUCCESS;
  });
}

// Waits until operations begun before are complete. Only arena memory has a state to set. Pinned memory needs none: copies from and to it
// always wait. Memory that the program maps, and variables of modules, do not accept this attribute.
VGPU_EXPORT CUresult CUDAAPI cuPointerSetAttribute(const void* value, CUpointer_attribute attribute, CUdeviceptr ptr) {
  return enter([&](Thread& thread) -> CUresult {
    Session& session = thread.session;
    auto info = findPointer(thread, ptr);
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !info) return CUDA_ERROR_INVALID_VALUE;
    const unsigned wanted = *static_cast<const unsigned*>(value);
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    if (info->type != CU_MEMORYTYPE_HOST && !session.memory.setSynchronizing(ptr, wanted != 0)) return CUDA_ERROR_INVALID_VALUE;
    return synchronizeDevice(thread, info->device);
  });
}

}  // extern "C"
