// Helpers that make the rows of compilers.h.
#pragma once
#include <bit>
#include <type_traits>

#include "intercept/runtime/compilers.h"

namespace vgpu::runtime {

/// Stores the address of a copy's function in `copies`, an array with one element a copy of the library.
template <auto& copies, auto member>
void note(size_t copy, uint64_t address) {
  auto& function = copies[copy].*member;
  function = std::bit_cast<std::remove_reference_t<decltype(function)>>(address);
}

template <typename Function>
void (*asTarget(Function* function))() {
  return std::bit_cast<void (*)()>(function);
}

}  // namespace vgpu::runtime
