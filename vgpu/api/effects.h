// The table's description of each frame, for code that keeps, restores and replays frames without knowing their meaning.
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

// A number in a frame: offset in the structure and size, in bytes.
struct NumberField {
  uint32_t offset;
  uint32_t bytes;
};

struct EffectField {
  Effect effect;
  Kind kind;
  uint32_t offset;  // offset of the virtual handle
  bool parent;      // the created object belongs to this one
  bool nullable;    // 0 names no object
  bool place;       // a place (place.h), which names an object only if it is the place of an object of that kind
  // For a Data list (`offset` is its index among the frame's): the description of its elements. All handles in them are virtual; an object
  // of another kind than `kind` counts as used. nullptr: the field is a single handle.
  // `kind` is used. nullptr: the field is one handle.
  const Described* elements;
};

// A staging slab that a frame names, by a number or by a place (place.h).
struct SlabField {
  NumberField field;
  bool place;
  // How many bytes of the slab the frame reads: the product of the first number and each further number that is not 0. Empty if it only
  // writes.
  std::span<const NumberField> bytes;
};

struct MethodInfo : Nature {
  const char* name;   // nullptr: the number is retired
  const char* entry;  // exported symbol, or nullptr
  const char* signature;  // name and fields: streamDestroy(hStream u64)
  std::span<const EffectField> effects;
  // A setting replaces an earlier one if these numbers are equal; the other numbers are the value.
  bool isSetting;
  std::span<const NumberField> keys;
  std::span<const SlabField> slabs;
};
extern const MethodInfo methods[methodCount];

// Whether a method has this number.
inline bool isMethod(uint16_t number) { return number < methodCount && methods[number].name != nullptr; }
inline const MethodInfo& infoOf(Method method) { return methods[static_cast<size_t>(method)]; }

struct EffectOn {
  Effect effect;
  Kind kind;
  uint64_t handle;  // virtual handle
  bool parent;
  bool nullable;
};
using EffectVisitor = std::function<void(const EffectOn&)>;

// Calls `visit` for each object that the frame names, in the order of its fields. Throws kj::Exception if the frame is not a valid message.
void visitEffects(Method method, kj::ArrayPtr<const capnp::word> frame, const EffectVisitor& visit);

// Calls `visit(slab, bytes)` for each slab that the frame names: the slab's number, unchecked, and how many of its bytes the frame reads,
// UINT64_MAX if that overflows. Throws kj::Exception if the frame is not a valid message.
using SlabVisitor = std::function<void(uint64_t slab, uint64_t bytes)>;
void visitSlabs(Method method, kj::ArrayPtr<const capnp::word> frame, const SlabVisitor& visit);

// Whether `later`, a setting, sets the same property as `earlier`, a frame of the same method.
bool setsTheSame(Method method, kj::ArrayPtr<const capnp::word> later, kj::ArrayPtr<const capnp::word> earlier);

}  // namespace vgpu::api
