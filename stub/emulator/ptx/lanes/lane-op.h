// Turns a function of one lane's values into a row of the registry: a loop over 32 lanes that the compiler vectorises.
//
// Included only by files that are compiled once for each instruction set (VGPU_ISA is its name). Nothing here may call an inline function
// of the standard library: the linker keeps only one copy of it, perhaps one with instructions that this processor does not have.
#pragma once

#include <type_traits>
#include <utility>

#include "stub/emulator/ptx/lanes/frame.h"
#include "stub/emulator/ptx/lanes/registry.h"

#ifndef VGPU_ISA
#define VGPU_ISA baseline
#endif

// The lanes of an operation are independent, even if the output's register is also an input.
#if defined(__clang__)
#define VGPU_LANES _Pragma("clang loop vectorize(assume_safety)") for (int lane = 0; lane < laneCount; ++lane)
#else
#define VGPU_LANES _Pragma("GCC ivdep") for (int lane = 0; lane < laneCount; ++lane)
#endif

namespace vgpu::emulator {

namespace VGPU_ISA {

struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct Half2 {
  uint32_t bits;
};
struct Brain2 {
  uint32_t bits;
};
struct Wide {
  uint64_t lo, hi;
};  // b128

template <class T>
struct Cell {
  using Store = std::conditional_t<(sizeof(T) > 8), Wide, std::conditional_t<(sizeof(T) > 4), uint64_t, uint32_t>>;

  static T load(Store stored) {
    if constexpr (std::is_same_v<T, bool>)
      return stored != 0;
    else if constexpr (std::is_integral_v<T>)
      return static_cast<T>(stored);
    else if constexpr (sizeof(T) == 2)
      return __builtin_bit_cast(T, static_cast<uint16_t>(stored));
    else
      return __builtin_bit_cast(T, stored);
  }
  // Narrow values are extended to the register's width by their signedness, as cvt and ld require.
  static Store store(T value) {
    if constexpr (std::is_same_v<T, bool>)
      return value ? ~0u : 0u;
    else if constexpr (std::is_integral_v<T> && std::is_signed_v<T>)
      return static_cast<Store>(static_cast<std::make_signed_t<Store>>(value));
    else if constexpr (std::is_integral_v<T>)
      return static_cast<Store>(value);
    else if constexpr (sizeof(T) == 2)
      return __builtin_bit_cast(uint16_t, value);
    else
      return __builtin_bit_cast(Store, value);
  }
};

template <class T>
constexpr Shape shapeOf() {
  constexpr Literal literal = std::is_same_v<T, float>    ? Literal::f32
                              : std::is_same_v<T, double> ? Literal::f64
                              : std::is_same_v<T, bool>   ? Literal::predicate
                                                          : Literal::whole;
  return {sizeof(typename Cell<T>::Store), sizeof(T), literal};
}

template <class T>
inline typename Cell<T>::Store* lanesAt(std::byte* frame, int32_t offset) {
  return static_cast<typename Cell<T>::Store*>(static_cast<void*>(__builtin_assume_aligned(frame + offset, 64)));
}

template <auto F>
struct LaneOp;

template <class R, class... A, R (*F)(A...)>
struct LaneOp<F> {
  static inline void loop(typename Cell<R>::Store* out, const typename Cell<A>::Store*... in) {
    VGPU_LANES out[lane] = Cell<R>::store(F(Cell<A>::load(in[lane])...));
  }
  template <size_t... N>
  static inline void spread(std::byte* frame, const Inst* inst, std::index_sequence<N...>) {
    loop(lanesAt<R>(frame, inst->op[0]), lanesAt<A>(frame, inst->op[N + 1])...);
  }
  // LaneFrame is the first base of Warp.
  static const Inst* run(Warp& warp, const Inst* inst) {
    spread(static_cast<LaneFrame*>(static_cast<void*>(&warp))->frame, inst, std::index_sequence_for<A...>());
    return inst + 1;
  }
  static constexpr Row row() { return {run, shapeOf<R>(), sizeof...(A), {shapeOf<A>()...}}; }
};

template <auto F>
constexpr Row row() {
  return LaneOp<F>::row();
}

}  // namespace VGPU_ISA
}  // namespace vgpu::emulator
