// What graphs own besides nodes: memory of allocation nodes, and the program's user objects.
#include "intercept/driver/shared.h"

namespace vgpu::client {

CUresult allocateNode(Thread& thread, const CUDA_MEM_ALLOC_NODE_PARAMS& given, CUdeviceptr* address, NodeWork& work) {
  const CUmemLocation& location = given.poolProps.location;
  PoolPlace place;
  if (given.bytesize == 0 || given.poolProps.handleTypes != CU_MEM_HANDLE_TYPE_NONE) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = PoolPlace::ofNew(given.poolProps, thread.session.devices.size(), place)) return bad;
  if (!place.isOnDevice()) return CUDA_ERROR_NOT_SUPPORTED;
  AllocWork made{given, nullptr};
  made.given.accessDescs = nullptr;
  made.given.accessDescCount = 0;
  if (CUresult error = thread.session.graphMemories.make(thread, static_cast<unsigned>(location.id), given.bytesize, made.memory))
    return error;
  *address = made.given.dptr = made.memory->address;
  work = std::move(made);
  return CUDA_SUCCESS;
}

CUresult freeNode(Session& session, CUdeviceptr address, NodeWork& work) {
  auto memory = session.graphMemories.find(address);
  if (memory == nullptr) return CUDA_ERROR_INVALID_VALUE;
  work = FreeWork{std::move(memory)};
  return CUDA_SUCCESS;
}

CUresult makeUserObject(CUuserObject* object, void* data, CUhostFn destroy, unsigned count, unsigned flags) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (object == nullptr || destroy == nullptr || count == 0 || count > INT32_MAX || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
      return CUDA_ERROR_INVALID_VALUE;
    *object = fromWire<CUuserObject>(thread.session.userObjects.make(destroy, data, count));
    return CUDA_SUCCESS;
  });
}

CUresult countUserObject(CUuserObject object, unsigned count, bool retains) {
  return enterAny([&](Thread& thread) -> CUresult {
    if (count == 0 || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
    UserObjects& objects = thread.session.userObjects;
    return retains ? objects.retain(toWire(object), count) : objects.release(toWire(object), count);
  });
}

CUresult countHeldObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags, bool retains) {
  return enterAny([&](Thread& thread) -> CUresult {
    auto found = thread.session.graphs.find(toWire(graph));
    if (found == nullptr || count == 0 || count > INT32_MAX) return CUDA_ERROR_INVALID_VALUE;
    std::shared_ptr<UserObject> last;
    if (!retains) return found->held.remove(toWire(object), count, last) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    auto held = thread.session.userObjects.find(toWire(object));
    if (held == nullptr || (flags & ~CU_GRAPH_USER_OBJECT_MOVE) != 0) return CUDA_ERROR_INVALID_VALUE;
    if ((flags & CU_GRAPH_USER_OBJECT_MOVE) != 0)
      if (CUresult error = thread.session.userObjects.release(toWire(object), count)) return error;
    found->held.add(toWire(object), held, count);
    return CUDA_SUCCESS;
  });
}

}  // namespace vgpu::client
