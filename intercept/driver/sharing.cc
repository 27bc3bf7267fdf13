// CUDA's inter-process handles are 64 bytes, which one process passes to another. A session uses only the first bytes: the handle's type
// and its shared name.
#include "intercept/driver/sharing.h"

#include <cstring>

#include "intercept/driver/shared.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

struct Content {
  Shared what;
  SharedName name;
  SharedName pool;  // of memory of a shared pool: the pool's name
};
constexpr size_t handleBytes = 64;
static_assert(sizeof(Content) <= handleBytes && sizeof(CUipcMemHandle) == handleBytes &&
              sizeof(CUipcEventHandle) == handleBytes && sizeof(CUmemPoolPtrExportData) == handleBytes);

// The shared name of a pool whose allocations can be given to other sessions.
CUresult nameOf(Thread& thread, CUmemoryPool pool, SharedName& name) {
  return withPool(thread, pool, [&](StreamPools&, StreamPool& found) -> CUresult {
    if (!found.isShareable) return CUDA_ERROR_INVALID_VALUE;
    if (!found.name) found.name = SharedName::make();
    name = *found.name;
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult client::share(Thread& thread, Shared what, uint64_t object, void* handle) {
  Content content{what, {}, {}};
  if (what != Shared::event) {
    auto allocation = thread.session.memory.findDevice(object);
    CUmemoryPool pool = allocation ? thread.session.memory.poolOf(allocation->address) : nullptr;
    if (!allocation || (pool != nullptr) != (what == Shared::pooled)) return CUDA_ERROR_INVALID_VALUE;
    if (pool != nullptr && allocation->address != object) return CUDA_ERROR_INVALID_VALUE;
    if (pool != nullptr)
      if (CUresult refused = nameOf(thread, pool, content.pool)) return refused;
  }
  SharedObjects& shared = thread.session.shared;
  if (CUresult error = what == Shared::event ? shared.giveEvent(thread, object, content.name)
                                             : shared.giveMemory(thread, object, content.name))
    return error;
  std::memset(handle, 0, handleBytes);
  std::memcpy(handle, &content, sizeof content);
  return CUDA_SUCCESS;
}

CUresult client::openShared(Thread& thread, Shared what, const void* handle, CUmemoryPool pool, uint64_t& object) {
  Content content;
  std::memcpy(&content, handle, sizeof content);
  if (what == Shared::pooled) {
    CUresult refused = withPool(thread, pool, [&](StreamPools&, StreamPool& found) {
      return found.isTaken && found.name == content.pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    });
    if (refused != CUDA_SUCCESS) return refused;
  }
  if (content.what != what) return what == Shared::event ? CUDA_ERROR_MAP_FAILED : CUDA_ERROR_INVALID_VALUE;
  if (what == Shared::event) return thread.session.shared.takeEvent(thread, content.name, object);
  return thread.session.shared.takeMemory(thread, content.name, what == Shared::pooled, object);
}

// ------------------------------------------------------------------ pools

CUresult client::sharePool(void* descriptor, CUmemoryPool pool, CUmemAllocationHandleType type) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (descriptor == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    SharedName name;
    int made = -1;
    if (CUresult refused = nameOf(thread, pool, name)) return refused;
    if (!ExportedMemory::make(made, ExportedMemory::What::pool, name)) return CUDA_ERROR_OPERATING_SYSTEM;
    *static_cast<int*>(descriptor) = made;
    return CUDA_SUCCESS;
  });
}

CUresult client::openSharedPool(CUmemoryPool* pool, void* descriptor, CUmemAllocationHandleType type) {
  return enter([&](Thread& thread) -> CUresult {
    if (pool == nullptr || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) return CUDA_ERROR_INVALID_VALUE;
    auto name = ExportedMemory::nameIn(static_cast<int>(toWire(descriptor)), ExportedMemory::What::pool);
    if (!name) return CUDA_ERROR_INVALID_VALUE;
    return thread.session.memory.withPools(thread, [&](StreamPools& pools) -> CUresult {
      *pool = pools.create(PoolPlace::at(thread.device()), 0);
      StreamPool& opened = *pools.find(*pool);
      opened.name = name;
      opened.isTaken = true;
      return CUDA_SUCCESS;
    });
  });
}
