// The stored form of a record: a Cap'n Proto message (records.capnp) in the standard stream framing. Decoded bytes come from an
// untrusted program, so every size, kind and method is checked, and the frames are parsed.
#pragma once

#include <kj/array.h>
#include <kj/common.h>

#include "vgpu/objects/object-list.h"

namespace vgpu {

constexpr size_t maxRecordBytes = size_t{32} << 20;
constexpr size_t maxNeeds = size_t{1} << 16;
constexpr size_t maxRecipeFrames = size_t{1} << 16;

kj::Array<capnp::word> encodeRecord(const ObjectRecord& record);

// Throws kj::Exception that says which part is invalid.
ObjectRecord decodeRecord(kj::ArrayPtr<const kj::byte> bytes);

// What a frame does to objects. Throws kj::Exception if the message is not valid for the method.
std::vector<api::EffectOn> effectsOf(api::Method method, kj::ArrayPtr<const capnp::word> words);

}  // namespace vgpu
