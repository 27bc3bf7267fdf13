// What a generated entry gives the program: a value of our state, or of a reply, as the type that the header has for it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "vgpu/api/wire-value.h"

namespace vgpu::client {

template <typename Out, typename Value>
void answer(Out* out, const Value& value) {
  if constexpr (std::is_same_v<Out, Value>) {
    *out = value;
  } else if constexpr (std::is_class_v<Value>) {
    *out = fromWire<Out>(value.load());  // atomic
  } else {
    *out = fromWire<Out>(toWire(value));
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

}  // namespace vgpu::client
