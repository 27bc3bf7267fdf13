#include "intercept/libraries/objects.h"

#include <cstring>

#include "intercept/session/call.h"

namespace vgpu::client {

uint64_t libraryHandleOf(const api::ObjectType& type, uint64_t word) {
  if (type.inPlaceBytes == 0 || word == 0) return word;
  uint64_t handle;
  std::memcpy(&handle, fromWire<const void*>(word), sizeof handle);
  return handle;
}

void giveLibraryHandle(const api::ObjectType& type, uint64_t word, uint64_t handle, void* place) {
  uint64_t given = type.inPlaceBytes == 0 ? handle : toWire(place);
  if (place != nullptr) std::memcpy(place, &handle, sizeof handle);
  if (word != toWire(place)) std::memcpy(fromWire<void*>(word), &given, sizeof given);
}

CUresult endLibraryObject(Thread& thread, uint64_t handle, const api::LibraryEntry* entry) {
  kj::StringPtr symbol = entry == nullptr ? "" : entry->symbol;
  Call<api::Cuda::LibraryDestroyParams> frame(thread.of(handle), api::Method::libraryDestroy, dataWords(symbol.size() + 1));
  frame->setObject(handle);
  frame->setEntry(entry == nullptr ? 0 : entry->signature);
  frame->setSymbol(symbol);
  CUresult result = frame.post();
  thread.session.handles.destroy<api::Kind::LIBRARY_OBJECT>(handle, [](LibraryObjectState& ended) { ended.reset(); });
  return result;
}

}  // namespace vgpu::client
