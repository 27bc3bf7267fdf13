// What the table says of each frame, for those that keep, restore and replay frames without knowing what they are.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>

#include <cstdint>
#include <functional>
#include <span>

#include "cuda-kinds.h"
#include "cuda-methods.h"
#include "vgpu/api/described.h"

namespace vgpu::api {

enum class Effect : uint8_t { creates, uses, changes, destroys };

// A number of a frame: its offset in the structure and its size, in bytes.
struct NumberField {
  uint32_t offset;
  uint32_t bytes;
};

struct EffectField {
  Effect effect;
  Kind kind;
  uint32_t offset;  // of the virtual handle
  bool parent;      // the created object lives in this one
  bool nullable;    // 0 names no object
  bool place;       // names one only if it is the place of an object of that kind (place.h)
  // Of a Data list (`offset`: which of the frame's): its elements, every handle of which is a virtual one. One of another kind than
  // `kind` is used. nullptr: the field is one handle.
  const Described* elements;
};

// A staging slab that a frame names, if it is a number; a place may name one (place.h).
struct SlabField {
  NumberField field;
  bool place;
  // How many of its bytes the frame reads: the first number, times each other one that is not 0. None if it only writes.
  std::span<const NumberField> bytes;
};

struct MethodInfo : Nature {
  const char* name;   // nullptr: no frame has that number any more
  const char* entry;  // exported symbol, or nullptr
  const char* signature;  // name and fields: streamDestroy(hStream u64)
  std::span<const EffectField> effects;
  // A setting takes an earlier one's place if these numbers are equal; the others are the value.
  bool isSetting;
  std::span<const NumberField> keys;
  std::span<const SlabField> slabs;
};
extern const MethodInfo methods[methodCount];

// Whether a number is that of a method.
inline bool isMethod(uint16_t number) { return number < methodCount && methods[number].name != nullptr; }
inline const MethodInfo& infoOf(Method method) { return methods[static_cast<size_t>(method)]; }

struct EffectOn {
  Effect effect;
  Kind kind;
  uint64_t handle;  // virtual
  bool parent;
  bool nullable;
};
using EffectVisitor = std::function<void(const EffectOn&)>;

// Calls `visit` for each object that the frame names, in the order of its fields. Throws kj::Exception on a frame that is no
// valid message.
void visitEffects(Method method, kj::ArrayPtr<const capnp::word> frame, const EffectVisitor& visit);

// Calls `visit(slab, bytes)` for each slab that the frame names: its number, which may be too large for one, and how many bytes
// the frame reads of it, UINT64_MAX for more than a number holds. Throws kj::Exception on a frame that is no valid message.
using SlabVisitor = std::function<void(uint64_t slab, uint64_t bytes)>;
void visitSlabs(Method method, kj::ArrayPtr<const capnp::word> frame, const SlabVisitor& visit);

// Whether `later`, a setting, sets what `earlier` did, a frame of the same method.
bool setsTheSame(Method method, kj::ArrayPtr<const capnp::word> later, kj::ArrayPtr<const capnp::word> earlier);

}  // namespace vgpu::api
