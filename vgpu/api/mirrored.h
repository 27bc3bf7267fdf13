// The table's description of each frame for code that replicates a session's memory between hosts (vgpu/wire/mirror.h): the memory that the
// GPU or the worker writes for the program when the frame is executed.
#pragma once

#include "vgpu/api/effects.h"
#include "vgpu/api/place.h"

namespace vgpu::api {

// A completion word that a frame names.
struct CompletionField {
  NumberField field;
  bool later;     // what the frame makes writes other numbers to it, repeatedly; otherwise the GPU writes the frame's number, once
  bool answered;  // the GPU then waits until the program has written the number into `answered`
};

struct MirroredMethod {
  std::span<const SlabField> fills;  // slabs, or the caller's slot, and how many bytes the frame writes into each
  std::span<const CompletionField> completions;
};
extern const MirroredMethod mirroredMethods[methodCount];

inline const MirroredMethod& mirroredOf(Method method) { return mirroredMethods[static_cast<size_t>(method)]; }

// Calls `visit(place, bytes)` for each place into which the frame writes, with the number of bytes, UINT64_MAX if that overflows. A place
// is a slab, whose number is unchecked, or the slot on which the call waits. Throws kj::Exception if the frame is not a valid message.
using FillVisitor = std::function<void(Place place, uint64_t bytes)>;
void visitFills(Method method, kj::ArrayPtr<const capnp::word> frame, const FillVisitor& visit);

// Likewise, calls `visit(word, field)` for each completion word that the frame names; its number is unchecked.
using CompletionVisitor = std::function<void(uint64_t word, const CompletionField& field)>;
void visitCompletions(Method method, kj::ArrayPtr<const capnp::word> frame, const CompletionVisitor& visit);

}  // namespace vgpu::api
