// What a generated entry gives the program: a value of our state, or of a reply, as the type that the header has for it.
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

// What `read` gives of an object, or `otherwise` if the handle was null.
template <typename Entry, typename Read, typename Value>
auto valueOr(Entry* entry, Read read, Value otherwise) {
  return entry != nullptr ? read(*entry) : static_cast<decltype(read(*entry))>(otherwise);
}

template <typename Out, typename Value>
void answer(Out* out, const Value& value) {
  if constexpr (std::is_null_pointer_v<Value>) {
    *out = value;
  } else if constexpr (std::is_unsigned_v<Out> && std::is_unsigned_v<Value> && sizeof(Out) < sizeof(Value)) {
    *out = static_cast<Out>(std::min<Value>(value, std::numeric_limits<Out>::max()));  // a size, in an entry's first version
  } else if constexpr (std::is_same_v<Out, Value>) {
    std::memcpy(out, &value, sizeof value);  // programs of CUDA 12 align a tensor map to half of what ours asks
  } else {
    *out = fromWire<Out>(toWire(valueOf(value)));
  }
}
// The text lives as long as the object that it belongs to.
inline void answer(const char** out, const std::string& text) { *out = text.c_str(); }

// As much of `text` as fits into `bytes` with the zero behind it.
inline void answerText(char* out, int bytes, const std::string& text) {
  size_t kept = std::min(text.size(), static_cast<size_t>(bytes) - 1);
  std::memcpy(out, text.data(), kept);
  out[kept] = 0;
}

// Elements of a reply, of which the program has room for so many.
inline void answerList(void* out, uint64_t room, size_t elementBytes, kj::ArrayPtr<const kj::byte> elements) {
  size_t count = std::min<uint64_t>(room, elements.size() / elementBytes);
  if (out != nullptr && count != 0) std::memcpy(out, elements.begin(), count * elementBytes);
}
// How many there are; if the program gave room for some, how many it got.
template <typename Count>
void answerCount(Count* out, bool hasRoom, uint64_t count) {
  *out = static_cast<Count>(hasRoom ? std::min<uint64_t>(*out, count) : count);
}

}  // namespace vgpu::client
