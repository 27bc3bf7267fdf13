// What the table says of each frame for those that replicate a session's memory between hosts (vgpu/wire/mirror.h): which memory
// the GPU or the worker writes for the program when the frame is executed.
#pragma once

#include "vgpu/api/effects.h"
#include "vgpu/api/place.h"

namespace vgpu::api {

// A completion word that a frame names.
struct CompletionField {
  NumberField field;
  bool later;     // what the frame makes writes other numbers there, again and again; else the GPU writes the frame's, once
  bool answered;  // the GPU then waits until the program has written the number into `answered`
};

struct MirroredMethod {
  std::span<const SlabField> fills;  // into which the frame writes so many bytes: slabs, or the caller's slot
  std::span<const CompletionField> completions;
};
extern const MirroredMethod mirroredMethods[methodCount];

inline const MirroredMethod& mirroredOf(Method method) { return mirroredMethods[static_cast<size_t>(method)]; }

// Calls `visit(place, bytes)` for each place into which the frame writes that many bytes, UINT64_MAX for more than a number
// holds: a slab, whose number may be too large for one, or the slot on which the call waits. Throws kj::Exception on a frame that
// is no valid message.
using FillVisitor = std::function<void(Place place, uint64_t bytes)>;
void visitFills(Method method, kj::ArrayPtr<const capnp::word> frame, const FillVisitor& visit);

// The same for each completion word that the frame names: calls `visit(word, field)`; its number may be too large for one.
using CompletionVisitor = std::function<void(uint64_t word, const CompletionField& field)>;
void visitCompletions(Method method, kj::ArrayPtr<const capnp::word> frame, const CompletionVisitor& visit);

}  // namespace vgpu::api
