// What a frame does to objects: read by the object list, by restore and by replay. Generated from the schema's annotations.
#pragma once

#include <capnp/message.h>

#include <functional>

#include "cuda-methods.h"
#include "vgpu/api/annotations.capnp.h"

namespace vgpu::api {

struct MethodInfo {
  const char* name;
  const char* entry;  // exported symbol, or nullptr
  uint32_t since;     // CUDA version of it: 12040 is 12.4
  Route route;
  Replay replay;
  bool noWork;        // leaves nothing for the GPU to do
};
extern const MethodInfo methods[methodCount];

inline const MethodInfo& infoOf(Method method) { return methods[static_cast<size_t>(method)]; }

enum class Effect { creates, uses, changes, destroys };

struct EffectOn {
  Effect effect;
  Kind kind;
  uint64_t handle;  // virtual
  bool parent;      // the created object lives in this one
  bool nullable;    // 0 names no object
};
using EffectVisitor = std::function<void(const EffectOn&)>;

// Calls `visit` for each object that the frame names, in the order of its parameters. Throws kj::Exception on a frame
// that is no valid message.
void visitEffects(Method method, capnp::MessageReader& frame, const EffectVisitor& visit);

}  // namespace vgpu::api
