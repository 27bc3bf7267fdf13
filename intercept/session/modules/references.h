// Texture and surface references, which CUDA 12 removed from its compiler: a module has one only if its PTX declares it. The worker's
// driver keeps their settings; the client knows their names and the arrays to which they are bound.
//
// Any thread, outside the gate; no lock. Stays in the program's process over a suspend.
#pragma once

#include <cuda.h>

#include <cstring>

#include "intercept/session/call.h"
#include "intercept/session/modules/names.h"
#include "intercept/session/thread.h"

namespace vgpu::client {

// The live reference of that name in a module, if the program has looked it up before; else 0.
template <api::Kind kind>
uint64_t findKnownReference(HandleTable& handles, uint64_t module, const char* name) {
  for (uint64_t handle : handles.live(kind, handleDevice(module)))
    if (auto* state = handles.find<kind>(handle); state != nullptr && state->module == module && state->name == name) return handle;
  return 0;
}

// The reference of that name in a live module, with one handle for each name. CUDA_ERROR_NOT_FOUND if there is none.
template <api::Kind kind, typename Params, api::Method method>
CUresult findReference(Thread& thread, uint64_t module, const char* name, uint64_t& reference) {
  HandleTable& handles = thread.session.handles;
  if ((reference = findKnownReference<kind>(handles, module, name)) != 0) return CUDA_SUCCESS;
  const size_t length = std::strlen(name);
  if (length > maxNameBytes) return CUDA_ERROR_NOT_FOUND;
  reference = handles.reserve(kind, handleDevice(module));
  Call<Params> frame(thread.of(module), method, dataWords(length + 1));
  if constexpr (kind == api::Kind::TEXTURE_REFERENCE) {
    frame->setPTexRef(reference);
  } else {
    frame->setPSurfRef(reference);
  }
  frame->setHmod(module);
  frame->setName(name);
  if (CUresult error = frame.call()) return handles.abandon(reference), error;
  handles.publish<kind>(reference, 0, [&](ReferenceState& state) {
    state.module = module;
    state.name = name;
  });
  return CUDA_SUCCESS;
}

// Ends a module's references.
template <api::Kind kind>
void dropReferences(HandleTable& handles, uint64_t module) {
  for (uint64_t handle : handles.live(kind, handleDevice(module)))
    if (auto* state = handles.find<kind>(handle); state != nullptr && state->module == module) handles.destroy(handle);
}

// The live array or mipmapped array to which a reference is bound. CUDA_ERROR_INVALID_VALUE if it is bound to none of that kind.
template <api::Kind of>
CUresult boundImage(Thread& thread, uint64_t reference, api::Kind kind, uint64_t& image) {
  auto* state = thread.session.handles.find<of>(reference);
  image = state == nullptr ? 0 : state->image.load();
  return image != 0 && thread.session.handles.isLive(kind, image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace vgpu::client
