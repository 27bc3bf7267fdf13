#include "intercept/session/descriptions.h"

#include <cstring>
#include <string_view>
#include <utility>

#include "intercept/session/call.h"

namespace vgpu::client {

namespace {

// Posts a stored call of the object with that handle. `variables`: only for the call that makes the object.
template <typename Params>
CUresult postAgain(Thread& thread, api::Method method, const LibraryObject::Call& call, uint64_t handle, std::string_view variables = {}) {
  auto block = call.block.data();
  Call<Params> frame(thread.of(handle), method,
                     dataWords(block.size()) + dataWords(std::strlen(call.row->symbol) + 1) + dataWords(variables.size()));
  if constexpr (requires { frame->setObject(handle); }) {
    frame->setObject(handle);
    frame->setVariables(kj::arrayPtr(variables.data(), variables.size()).asBytes());
  }
  frame->setEntry(call.row->signature);
  frame->setHostMask(call.hostMask);
  frame->setSymbol(call.row->symbol);
  frame->setArguments(block);
  return frame.post();
}

CUresult post(Thread& thread, const LibraryObject& object, uint64_t handle, std::string_view variables) {
  constexpr auto again = api::Method::libraryCreateAgain;
  if (CUresult error = postAgain<api::Cuda::LibraryCreateParams>(thread, again, object.later->made, handle, variables)) return error;
  for (auto& call : object.calls())
    if (CUresult error = postAgain<api::Cuda::LibrarySetParams>(thread, api::Method::librarySet, call, handle)) return error;
  return CUDA_SUCCESS;
}

}  // namespace

CUresult sendLibraryDestroy(Thread& thread, uint64_t handle, const api::LibraryEntry* destroy) {
  kj::StringPtr symbol = destroy == nullptr ? "" : destroy->symbol;
  Call<api::Cuda::LibraryDestroyParams> frame(thread.of(handle), api::Method::libraryDestroy, dataWords(symbol.size() + 1));
  frame->setObject(handle);
  frame->setEntry(destroy == nullptr ? 0 : destroy->signature);
  frame->setSymbol(symbol);
  return frame.post();
}

CUresult Descriptions::makeNow(Thread& thread, LibraryObject& object) {
  std::lock_guard lock(making);
  if (!object.isPending()) return CUDA_SUCCESS;  // another thread has made it
  HandleTable& handles = thread.session.handles;
  const uint64_t found = idle.take(object);
  const bool isFound = found != 0 && handles.find<api::Kind::LIBRARY_OBJECT>(found) != nullptr;  // it may have ended with its context
  const uint64_t handle = isFound ? found : handles.create(api::Kind::LIBRARY_OBJECT, object.later->device, object.later->context);
  object.nameInCalls(handle);
  if (!isFound)
    if (CUresult error = post(thread, object, handle, variables)) return error;  // the session is lost
  object.isThere(handle);
  return CUDA_SUCCESS;
}

CUresult Descriptions::end(Thread& thread, std::unique_ptr<LibraryObject> object, const api::LibraryEntry* destroy) {
  if (object->isPending()) return CUDA_SUCCESS;  // it was never made in the worker
  object->ours.reset();
  HandleTable& handles = thread.session.handles;
  auto ended = idle.keep({std::move(object), destroy});
  if (!ended) return CUDA_SUCCESS;
  const uint64_t handle = ended->object->remote();
  if (handles.find<api::Kind::LIBRARY_OBJECT>(handle) == nullptr) return CUDA_SUCCESS;
  CUresult result = sendLibraryDestroy(thread, handle, ended->destroy);
  handles.destroy(handle);
  return result;
}

}  // namespace vgpu::client
