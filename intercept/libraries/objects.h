// Objects of libraries, as the program names them: by the virtual handle, or by the address of a structure that starts with it.
#pragma once

#include "intercept/session/thread.h"
#include "vgpu/api/library.h"

namespace vgpu::client {

// The virtual handle that the program's word names; 0 for a null word.
uint64_t libraryHandleOf(const api::ObjectType& type, uint64_t word);

// The live object of a virtual handle; nullptr if there is none.
inline LibraryObject* findLibraryObject(Thread& thread, uint64_t handle) {
  auto* entry = thread.session.handles.find<api::Kind::LIBRARY_OBJECT>(handle);
  return entry == nullptr ? nullptr : entry->object.get();
}

// Writes the handle of a new object to *word; for an object in the program's memory, to that memory.
void giveLibraryHandle(const api::ObjectType& type, uint64_t word, uint64_t handle, void* place);

// Ends an object. The worker keeps a description for reuse by a similar one (IdleDescriptions). CUDA's result.
CUresult endLibraryObject(Thread& thread, uint64_t handle, const api::LibraryEntry* entry = nullptr);

}  // namespace vgpu::client
