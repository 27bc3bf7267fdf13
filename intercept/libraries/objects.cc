#include "intercept/libraries/objects.h"

#include <cstring>
#include <memory>
#include <utility>

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
  LibraryObject* object = findLibraryObject(thread, handle);
  const bool isDescription = object != nullptr && object->later.has_value();
  CUresult result = isDescription ? CUDA_SUCCESS : sendLibraryDestroy(thread, handle, entry);
  std::unique_ptr<LibraryObject> ended;
  thread.session.handles.destroy<api::Kind::LIBRARY_OBJECT>(handle, [&](LibraryObjectState& state) { ended = std::move(state.object); });
  return isDescription && ended ? thread.session.descriptions.end(thread, std::move(ended), entry) : result;
}

}  // namespace vgpu::client
