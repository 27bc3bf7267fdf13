// Matrix instructions of a whole warp. Operands are WideOperands; imm is a MatrixForm.
#pragma once

#include <bit>

#include "stub/emulator/ptx/run/matrix-values.h"

namespace vgpu::emulator {

constexpr int mostDepth = 256;  // k

struct MatrixForm {
  uint16_t k;
  uint8_t m, n;
  Element a : 4, b : 4, c : 4, d : 4;
  uint8_t flags;     // below
  uint8_t selector;  // for a sparse A: which of four threads hold its metadata
};
constexpr uint8_t saturateFlag = 1, columnMajorFlag = 2, transposedFlag = 2,
                  xorFlag = 4,  // for b1; otherwise and
    sparseFlag = 8,             // A is stored with half of its columns, and has a metadata operand
    rowMajorBFlag = 16,         // for multiplyQuads; A is column-major with columnMajorFlag
    towardZeroFlag = 32, downFlag = 64, upFlag = 128;  // for f64: rounding of sums, otherwise to nearest
inline uint64_t bitsOf(MatrixForm form) { return std::bit_cast<uint64_t>(form); }

// mma.sync: outs D; ins A, B, C and for a sparse A its metadata, in PTX's layout.
const Inst* multiplyMatrices(Warp&, const Inst*);
// mma.m8n8k4 of halves: four products, each by four threads and those with numbers 16 higher.
const Inst* multiplyQuads(Warp&, const Inst*);
// wmma.mma: the same on fragments of wmma.load, in a layout of our own: element e of lane l is number l * count + e.
const Inst* multiplyFragments(Warp&, const Inst*);
// wmma.load and .store of one matrix of m x n elements `a`; ins: address (64 bits), stride in elements, and for store the fragment.
const Inst* loadFragment(Warp&, const Inst*);
const Inst* storeFragment(Warp&, const Inst*);
// ldmatrix, stmatrix: `k` matrices of 8 x 8 16-bit elements; ins: address (64 bits), and for stmatrix the registers.
const Inst* loadMatrices(Warp&, const Inst*);
const Inst* storeMatrices(Warp&, const Inst*);
// movmatrix: outs d; ins a
const Inst* transposeMatrix(Warp&, const Inst*);

}  // namespace vgpu::emulator
