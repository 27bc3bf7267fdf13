// The handles that one process gives to another are 64 bytes of CUDA's, of which a session uses the first: what it is, and its
// name.
#include "intercept/driver/sharing.h"

#include <cstring>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

enum class Shared : uint64_t {
  memory = 0x6d656d2d75706776,
  event = 0x7476652d75706776,
  pooled = 0x7274702d75706776
};  // "vgpu-mem" …

struct Content {
  Shared what;
  SharedName name;
  SharedName pool;  // of what is pooled
};
static_assert(sizeof(Content) <= 64 && sizeof(CUipcMemHandle) == 64 && sizeof(CUipcEventHandle) == 64 &&
              sizeof(CUmemPoolPtrExportData) == 64);

template <typename Handle>
void write(Handle* handle, const Content& content) {
  std::memset(handle->reserved, 0, sizeof handle->reserved);
  std::memcpy(handle->reserved, &content, sizeof content);
}

// Nothing if it is not such a handle.
template <typename Handle>
std::optional<Content> read(const Handle& handle, Shared what) {
  Content content;
  std::memcpy(&content, handle.reserved, sizeof content);
  return content.what == what ? std::optional(content) : std::nullopt;
}

// Runs `body` with a pool. CUDA_ERROR_INVALID_VALUE if there is none.
template <typename Body>
CUresult onPool(Thread& thread, CUmemoryPool handle, Body&& body) {
  return thread.session.memory.withPools(thread, [&](StreamPools& pools) -> CUresult {
    StreamPool* pool = pools.find(handle);
    return pool == nullptr ? CUDA_ERROR_INVALID_VALUE : body(pools, *pool);
  });
}

}  // namespace

CUresult client::shareMemory(CUipcMemHandle* handle, CUdeviceptr address) {
  return enter([&](Thread& thread) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto allocation = thread.session.memory.findDevice(address);
    if (!allocation || thread.session.memory.poolOf(allocation->address) != nullptr) return CUDA_ERROR_INVALID_VALUE;
    Content content{Shared::memory, {}, {}};
    if (CUresult error = thread.session.shared.giveMemory(thread, address, content.name)) return error;
    write(handle, content);
    return CUDA_SUCCESS;
  });
}

CUresult client::openSharedMemory(CUdeviceptr* address, const CUipcMemHandle& handle, unsigned flags) {
  return enter([&](Thread& thread) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    auto content = read(handle, Shared::memory);
    if (address == nullptr || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || !content) return CUDA_ERROR_INVALID_VALUE;
    uint64_t found = 0;
    CUresult result = thread.session.shared.takeMemory(thread, content->name, false, found);
    if (result == CUDA_SUCCESS) *address = found;
    return result;
  });
}

CUresult client::shareEvent(CUipcEventHandle* handle, CUevent event) {
  return onEvent(event, [&](Thread& thread, EventState& state) -> CUresult {
    if (handle == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if ((state.flags & CU_EVENT_INTERPROCESS) == 0) return CUDA_ERROR_INVALID_HANDLE;
    Content content{Shared::event, {}, {}};
    if (CUresult error = thread.session.shared.giveEvent(thread, toWire(event), content.name)) return error;
    write(handle, content);
    return CUDA_SUCCESS;
  });
}

CUresult client::openSharedEvent(CUevent* event, const CUipcEventHandle& handle) {
  return enter([&](Thread& thread) -> CUresult {
    auto content = read(handle, Shared::event);
    if (event == nullptr || !content) return CUDA_ERROR_INVALID_VALUE;
    uint64_t opened = 0;
    CUresult result = thread.session.shared.takeEvent(thread, content->name, opened);
    if (result == CUDA_SUCCESS) *event = fromWire<CUevent>(opened);
    return result;
  });
}

// ------------------------------------------------------------------ pools

CUresult client::sharePool(void* descriptor, CUmemoryPool pool, CUmemAllocationHandleType type) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (descriptor == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    return onPool(thread, pool, [&](StreamPools&, StreamPool& found) -> CUresult {
      if (!found.isShareable) return CUDA_ERROR_INVALID_VALUE;
      if (!found.name) found.name = SharedName::make();
      int made = -1;
      if (!ExportedMemory::make(made, ExportedMemory::What::pool, *found.name)) return CUDA_ERROR_OPERATING_SYSTEM;
      *static_cast<int*>(descriptor) = made;
      return CUDA_SUCCESS;
    });
  });
}

CUresult client::openSharedPool(CUmemoryPool* pool, void* descriptor, CUmemAllocationHandleType type) {
  return enter([&](Thread& thread) -> CUresult {
    if (pool == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    auto name = ExportedMemory::nameIn(static_cast<int>(toWire(descriptor)), ExportedMemory::What::pool);
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    return thread.session.memory.withPools(thread, [&](StreamPools& pools) -> CUresult {
      *pool = pools.create(thread.device(), 0);
      StreamPool& opened = *pools.find(*pool);
      opened.name = name;
      opened.isTaken = true;
      return CUDA_SUCCESS;
    });
  });
}

CUresult client::sharePooled(CUmemPoolPtrExportData* data, CUdeviceptr address) {
  return enter([&](Thread& thread) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    CUmemoryPool pool = thread.session.memory.poolOf(address);
    if (data == nullptr || pool == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Content content{Shared::pooled, {}, {}};
    CUresult refused = onPool(thread, pool, [&](StreamPools&, StreamPool& found) -> CUresult {
      if (!found.isShareable) return CUDA_ERROR_INVALID_VALUE;
      if (!found.name) found.name = SharedName::make();
      content.pool = *found.name;
      return CUDA_SUCCESS;
    });
    if (refused != CUDA_SUCCESS) return refused;
    if (CUresult error = thread.session.shared.giveMemory(thread, address, content.name)) return error;
    write(data, content);
    return CUDA_SUCCESS;
  });
}

CUresult client::openSharedPooled(CUdeviceptr* address, CUmemoryPool pool, const CUmemPoolPtrExportData* data) {
  return enter([&](Thread& thread) -> CUresult {
    if (CUresult refused = thread.refuseUnsafe()) return refused;
    if (address == nullptr || data == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto content = read(*data, Shared::pooled);
    CUresult refused = onPool(thread, pool, [&](StreamPools&, StreamPool& found) {
      return content && found.isTaken && found.name == content->pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
    if (refused != CUDA_SUCCESS) return refused;
    uint64_t found = 0;
    CUresult result = thread.session.shared.takeMemory(thread, content->name, true, found);
    if (result == CUDA_SUCCESS) *address = found;
    return result;
  });
}
