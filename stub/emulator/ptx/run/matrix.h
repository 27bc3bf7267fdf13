// Matrix instructions of a whole warp. Operands are WideOperands; imm is a MatrixForm.
#pragma once

#include <bit>
#include <optional>
#include <string_view>

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

enum class Element : uint8_t { none, f16, bf16, tf32, f32, f64, s8, u8, s4, u4, s32, b1 };
std::optional<Element> findElement(std::string_view name);
uint32_t bitsOf(Element);
// Elements that one register of a fragment holds.
inline uint32_t perRegister(Element e) { return e == Element::f64 ? 1 : 32 / bitsOf(e); }

constexpr int mostDepth = 128;  // k

struct MatrixForm {
  uint8_t m, n, k;
  Element a, b, c, d;
  uint8_t flags;  // below
};
constexpr uint8_t saturateFlag = 1, columnMajorFlag = 2, transposedFlag = 2,
                  xorFlag = 4;  // xorFlag: of b1, else its product
inline uint64_t bitsOf(MatrixForm form) { return std::bit_cast<uint64_t>(form); }

// mma.sync: outs D; ins A, B, C, in PTX's own layout.
const Inst* multiplyMatrices(Warp&, const Inst*);
// wmma.mma: the same over fragments of wmma.load, whose layout is ours: element e of lane l is number l * count + e.
const Inst* multiplyFragments(Warp&, const Inst*);
// wmma.load and .store: of one matrix of m x n elements `a`; ins: address (64 bits), stride in elements, and for store
// the fragment.
const Inst* loadFragment(Warp&, const Inst*);
const Inst* storeFragment(Warp&, const Inst*);
// ldmatrix, stmatrix: `k` matrices of 8 x 8 16-bit elements; ins: address (64 bits), and for stmatrix the registers.
const Inst* loadMatrices(Warp&, const Inst*);
const Inst* storeMatrices(Warp&, const Inst*);
// movmatrix: outs d; ins a
const Inst* transposeMatrix(Warp&, const Inst*);

}  // namespace vgpu::emulator
