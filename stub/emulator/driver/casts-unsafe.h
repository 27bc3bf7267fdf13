// Casts between numbers and the pointers and handles of the C ABI. The emulator has no other casts of this kind.
#pragma once

#include <cstddef>
#include <cstdint>

namespace vgpu::emulator::api {

template <class Handle>
Handle asHandle(uint64_t number) {
  return reinterpret_cast<Handle>(static_cast<uintptr_t>(number));
}
template <class Handle>
uint64_t asNumber(Handle* handle) {
  return static_cast<uint64_t>(reinterpret_cast<uintptr_t>(handle));
}
inline std::byte* asHostPointer(uint64_t address) {
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}
// A value of type Value at `host`, which the caller has found to be mapped and aligned.
template <class Value>
Value& valueAt(std::byte* host) {
  return *reinterpret_cast<Value*>(host);
}
template <class Function>
void* asAddress(Function* function) {
  return reinterpret_cast<void*>(function);
}

}  // namespace vgpu::emulator::api
