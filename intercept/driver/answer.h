// How generated entries return values: each converts a value of the client's state, or of a reply, to the type that the header declares.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include <kj/array.h>

#include "vgpu/api/wire-value.h"

namespace vgpu::client {

template <typename Value>
Value valueOf(const Value& value) {
  return value;
}
template <typename Value>
Value valueOf(const std::atomic<Value>& value) {
  return value.load(std::memory_order_relaxed);
}

// `read(*entry)`, or `otherwise` if the handle was null.
template <typename Entry, typename Read, typename Value>
auto valueOr(Entry* entry, Read read, Value otherwise) {
  return entry != nullptr ? read(*entry) : static_cast<decltype(read(*entry))>(otherwise);
}

template <typename Out, typename Value>
void answer(Out* out, const Value& value) {
  if constexpr (std::is_null_pointer_v<Value>) {
    *out = value;
  } else if constexpr (std::is_unsigned_v<Out> && std::is_unsigned_v<Value> && sizeof(Out) < sizeof(Value)) {
    *out = static_cast<Out>(std::min<Value>(value, std::numeric_limits<Out>::max()));  // a size, in an entry's first version: saturated
  } else if constexpr (std::is_same_v<Out, Value>) {
    std::memcpy(out, &value, sizeof value);  // programs of CUDA 12 align a tensor map to half of what our type requires
  } else {
    *out = fromWire<Out>(toWire(valueOf(value)));
  }
}
// The text lives as long as the object that owns it.
inline void answer(const char** out, const std::string& text) { *out = text.c_str(); }

// Copies as much of `text` as fits into `bytes` together with its terminating zero.
inline void answerText(char* out, int bytes, const std::string& text) {
  size_t kept = std::min(text.size(), static_cast<size_t>(bytes) - 1);
  std::memcpy(out, text.data(), kept);
  out[kept] = 0;
}

// Copies the elements of a reply; the program's array has `room` for that many elements.
inline void answerList(void* out, uint64_t room, size_t elementBytes, kj::ArrayPtr<const kj::byte> elements) {
  size_t count = std::min<uint64_t>(room, elements.size() / elementBytes);
  if (out != nullptr && count != 0) std::memcpy(out, elements.begin(), count * elementBytes);
}
// Returns how many elements there are; if the program passed an array, how many were written.
template <typename Count>
void answerCount(Count* out, bool hasRoom, uint64_t count) {
  *out = static_cast<Count>(hasRoom ? std::min<uint64_t>(*out, count) : count);
}

}  // namespace vgpu::client
