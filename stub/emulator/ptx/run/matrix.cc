#include "stub/emulator/ptx/run/matrix.h"

#include <array>
#include <cfenv>
#include <cstring>

#include "stub/emulator/ptx/lanes/matrix-product.h"
#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/sparse.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t matrixKind = 6;  // a kind of WarpSync, after those in collectives.cc

MatrixForm formOf(const Inst* inst) { return std::bit_cast<MatrixForm>(inst->imm); }
const WideOperands& operandsOf(const Inst* inst) { return *static_cast<const WideOperands*>(inst->aux); }

// The matrices of one multiplication, in row-major order.
struct Matrices {
  double a[32 * mostDepth], b[mostDepth * 32], c[32 * 32];

  void multiply(const MatrixForm& form) {
    const MatrixProducts& products = matrixProducts();
    if (form.flags & xorFlag) return countDifferent(form);
    const int mode = form.flags & towardZeroFlag ? FE_TOWARDZERO
                     : form.flags & downFlag     ? FE_DOWNWARD
                     : form.flags & upFlag       ? FE_UPWARD
                                                 : FE_TONEAREST;
    if (mode != FE_TONEAREST) std::fesetround(mode);
    (form.a == Element::f64 ? products.fused : products.exact)(c, a, b, form.m, form.n, form.k);
    if (mode != FE_TONEAREST) std::fesetround(FE_TONEAREST);
  }

 private:
  // For pairs of bits taken as 1 and -1, the sum of products is the number of equal pairs minus that of different ones.
  void countDifferent(const MatrixForm& form) {
    for (int i = 0; i < form.m * form.k; ++i) a[i] = 1 - 2 * a[i];
    for (int i = 0; i < form.k * form.n; ++i) b[i] = 2 * b[i] - 1;
    for (int i = 0; i < form.m * form.n; ++i) c[i] = 2 * c[i] + form.k;
    matrixProducts().exact(c, a, b, form.m, form.n, form.k);
    for (int i = 0; i < form.m * form.n; ++i) c[i] /= 2;
  }
};

bool wholeWarp(Warp& warp, const Inst* inst) {
  if (warp.active == warp.live()) return true;
  warp.fault(Fault::Kind::illegalInstruction, inst, warp.firstActive(),
             "a matrix instruction that not all threads of the warp execute");
  return false;
}

// The registers of A, B and C are consecutive inputs.
struct Registers {
  const int32_t *a, *b, *c, *d;
};

// PTX ISA, "Matrix Fragments for mma": a lane's group is its row of A and C and its column of B; registers alternate between the upper and
// the lower eight rows, then continue along k.
Registers split(const Inst* inst, uint32_t aRegisters, uint32_t bRegisters) {
  const WideOperands& operands = operandsOf(inst);
  return {operands.ins.data(), operands.ins.data() + aRegisters, operands.ins.data() + aRegisters + bRegisters,
          operands.outs.data()};
}

void takeMma(Warp& warp, const Inst* inst, uint32_t) {
  const MatrixForm form = formOf(inst);
  if (!wholeWarp(warp, inst)) return;
  Matrices matrices;
  const bool sparse = form.flags & sparseFlag;
  const uint32_t perA = perRegister(form.a), perB = perRegister(form.b), storedDepth = sparse ? form.k / 2u : form.k;
  const uint32_t aRegisters = form.m * storedDepth / (32 * perA), bRegisters = uint32_t{form.n} * form.k / (32 * perB),
                 accumulators = uint32_t{form.m} * form.n / 32;
  const Registers registers = split(inst, aRegisters, bRegisters);
  for (int lane = 0; lane < laneCount; ++lane) {
    const uint32_t group = lane / 4, member = lane % 4;
    // The elements of a register are adjacent along k.
    for (uint32_t r = 0; r < aRegisters; ++r) {
      const Position at = inA(form.a, lane, r * perA, form.m);
      double* const to = matrices.a + at.row * storedDepth + at.column;
      if (form.a == Element::f64)
        *to = valueAt(warp.frame, registers.a, form.a, lane, r);
      else
        decodeWord(form.a, *registerAt<uint32_t>(warp.frame, registers.a[r], lane), to, 1);
    }
    for (uint32_t r = 0; r < bRegisters; ++r) {
      double* const to = matrices.b + (r * 4 + member) * perB * form.n + group;
      if (form.b == Element::f64)
        *to = valueAt(warp.frame, registers.b, form.b, lane, r);
      else
        decodeWord(form.b, *registerAt<uint32_t>(warp.frame, registers.b[r], lane), to, form.n);
    }
    for (uint32_t i = 0; i < accumulators; ++i) {
      const Position at = inAccumulator(lane, i, form.m);
      matrices.c[at.row * form.n + at.column] = valueAt(warp.frame, registers.c, form.c, lane, i);
    }
  }
  if (sparse) {
    const auto* const words = warp.lanes<uint32_t>(registers.c[accumulators / perRegister(form.c)]);
    std::array<double, mostDepth / 2> stored;
    for (uint32_t row = form.m; row-- > 0;) {  // last row first, because rows grow in place
      std::copy_n(matrices.a + row * storedDepth, storedDepth, stored.begin());
      expandSparseRow(form.a, stored.data(), matrices.a + row * form.k, form.k, words, form.selector, row);
    }
  }
  matrices.multiply(form);
  for (int lane = 0; lane < laneCount; ++lane)
    for (uint32_t i = 0; i < accumulators; ++i) {
      const Position at = inAccumulator(lane, i, form.m);
      putValue(warp.frame, registers.d, form.d, lane, i, matrices.c[at.row * form.n + at.column], form.flags & saturateFlag);
    }
}

// PTX ISA, "Matrix Fragments for mma.m8n8k4 with .f16 floating point type". A thread holds one row or column of a factor; threads from 16
// on hold the lower four. For accumulators, a thread holds a row of halves, or floats in a pattern of their own.
Position inQuadFactor(uint32_t lane, uint32_t index, bool alongThread) {
  const uint32_t beyond = lane < 16 ? 0 : 4;
  return alongThread ? Position{lane % 4 + beyond, index} : Position{index + beyond, lane % 4};
}
Position inQuadAccumulator(Element e, uint32_t lane, uint32_t index) {
  const uint32_t beyond = lane < 16 ? 0 : 4;
  if (e == Element::f16) return {lane % 4 + beyond, index};
  return {(lane & 1) + (index & 2) + beyond, (index & 4) + (lane & 2) + (index & 1)};
}

void takeQuads(Warp& warp, const Inst* inst, uint32_t) {
  const MatrixForm form = formOf(inst);
  if (!wholeWarp(warp, inst)) return;
  const Registers registers = split(inst, 2, 2);
  double a[4][8 * 4], b[4][4 * 8], c[4][8 * 8];
  for (uint32_t lane = 0; lane < laneCount; ++lane) {
    const auto thread = static_cast<int>(lane);
    const uint32_t quad = lane % 16 / 4;
    for (uint32_t i = 0; i < 4; ++i) {
      const Position inFirst = inQuadFactor(lane, i, !(form.flags & columnMajorFlag));
      a[quad][inFirst.row * 4 + inFirst.column] = valueAt(warp.frame, registers.a, form.a, thread, i);
      const Position inSecond = inQuadFactor(lane, i, !(form.flags & rowMajorBFlag));  // (column, row)
      b[quad][inSecond.column * 8 + inSecond.row] = valueAt(warp.frame, registers.b, form.b, thread, i);
    }
    for (uint32_t i = 0; i < 8; ++i) {
      const Position at = inQuadAccumulator(form.c, lane, i);
      c[quad][at.row * 8 + at.column] = valueAt(warp.frame, registers.c, form.c, thread, i);
    }
  }
  for (uint32_t quad = 0; quad < 4; ++quad) matrixProducts().exact(c[quad], a[quad], b[quad], 8, 8, 4);
  for (uint32_t lane = 0; lane < laneCount; ++lane)
    for (uint32_t i = 0; i < 8; ++i) {
      const Position at = inQuadAccumulator(form.d, lane, i);
      putValue(warp.frame, registers.d, form.d, static_cast<int>(lane), i, c[lane % 16 / 4][at.row * 8 + at.column], false);
    }
}

// ---- wmma
template <class F>
void forFragment(uint32_t rows, uint32_t columns, F each) {
  const uint32_t count = rows * columns / laneCount;
  for (uint32_t lane = 0; lane < laneCount; ++lane)
    for (uint32_t e = 0; e < count; ++e) {
      const uint32_t number = lane * count + e;
      each(static_cast<int>(lane), e, number / columns, number % columns);
    }
}

// Registers of a fragment in the instruction, possibly more than its elements need.
void takeWmma(Warp& warp, const Inst* inst, uint32_t) {
  const MatrixForm form = formOf(inst);
  if (!wholeWarp(warp, inst)) return;
  Matrices matrices;
  const Registers registers = split(inst, static_cast<uint32_t>(inst->op[0]), static_cast<uint32_t>(inst->op[1]));
  forFragment(form.m, form.k, [&](int lane, uint32_t e, uint32_t row, uint32_t column) {
    matrices.a[row * form.k + column] = valueAt(warp.frame, registers.a, form.a, lane, e);
  });
  forFragment(form.k, form.n, [&](int lane, uint32_t e, uint32_t row, uint32_t column) {
    matrices.b[row * form.n + column] = valueAt(warp.frame, registers.b, form.b, lane, e);
  });
  forFragment(form.m, form.n, [&](int lane, uint32_t e, uint32_t row, uint32_t column) {
    matrices.c[row * form.n + column] = valueAt(warp.frame, registers.c, form.c, lane, e);
  });
  matrices.multiply(form);
  forFragment(form.m, form.n, [&](int lane, uint32_t e, uint32_t row, uint32_t column) {
    putValue(warp.frame, registers.d, form.d, lane, e, matrices.c[row * form.n + column], form.flags & saturateFlag);
  });
}

// An element smaller than a byte begins at bit `shift` of its byte.
struct ElementPlace {
  std::byte* byte;
  uint32_t bytes, shift;
};

ElementPlace fragmentAt(Warp& warp, const Inst* inst, int lane, const MatrixForm& form, uint32_t row, uint32_t column,
                        Access access) {
  const WideOperands& operands = operandsOf(inst);
  const uint64_t base = warp.lanes<uint64_t>(operands.ins[0])[lane];
  const uint32_t stride = warp.lanes<uint32_t>(operands.ins[1])[lane], bits = bitsOf(form.a);
  const uint64_t index =
      form.flags & columnMajorFlag ? uint64_t{column} * stride + row : uint64_t{row} * stride + column;
  const uint32_t bytes = std::max(bits / 8, 1u);
  return {warp.access(inst, lane, base + index * bits / 8, bytes, bytes, access), bytes,
          static_cast<uint32_t>(index * bits % 8)};
}

void takeLoadFragment(Warp& warp, const Inst* inst, uint32_t) {
  const MatrixForm form = formOf(inst);
  if (!wholeWarp(warp, inst)) return;
  const WideOperands& operands = operandsOf(inst);
  // Addresses may lie in output registers, so everything is read first.
  std::vector<uint64_t> values(size_t{form.m} * form.n);
  forFragment(form.m, form.n, [&](int lane, uint32_t e, uint32_t row, uint32_t column) {
    if (!(warp.live() >> lane & 1) || warp.block().grid().stopped) return;
    const ElementPlace from = fragmentAt(warp, inst, lane, form, row, column, Access::read);
    if (!from.byte) return;
    uint64_t& value = values[static_cast<uint32_t>(lane) * form.m * form.n / laneCount + e];
    std::memcpy(&value, from.byte, from.bytes);
    value >>= from.shift;  // putRaw() keeps only the element's bits
  });
  if (form.a != Element::f64)
    for (const int32_t slot : operands.outs) std::memset(warp.frame + slot, 0, 4 * laneCount);
  forFragment(form.m, form.n, [&](int lane, uint32_t e, uint32_t, uint32_t) {
    putRaw(warp.frame, operands.outs.data(), form.a, lane, e,
           values[static_cast<uint32_t>(lane) * form.m * form.n / laneCount + e]);
  });
}

void takeStoreFragment(Warp& warp, const Inst* inst, uint32_t) {
  const MatrixForm form = formOf(inst);
  if (!wholeWarp(warp, inst)) return;
  forFragment(form.m, form.n, [&](int lane, uint32_t e, uint32_t row, uint32_t column) {
    if (!(warp.live() >> lane & 1) || warp.block().grid().stopped) return;
    const ElementPlace to = fragmentAt(warp, inst, lane, form, row, column, Access::write);
    const uint64_t value = rawElement(warp.frame, operandsOf(inst).ins.data() + 2, form.a, lane, e);
    if (to.byte) std::memcpy(to.byte, &value, to.bytes);
  });
}

// ---- ldmatrix, stmatrix, movmatrix: lane 8 i + r holds the address of row r of matrix i
void takeMatrixRows(Warp& warp, const Inst* inst, bool store) {
  const MatrixForm form = formOf(inst);
  if (!wholeWarp(warp, inst)) return;
  const WideOperands& operands = operandsOf(inst);
  uint16_t rows[4][8][8];
  std::byte* places[4][8];
  for (int i = 0; i < form.k; ++i)
    for (int r = 0; r < 8; ++r) {
      const int lane = 8 * i + r;
      const uint64_t address = warp.lanes<uint64_t>(operands.ins[0])[lane];
      places[i][r] = warp.access(inst, lane, address, 16, 16, store ? Access::write : Access::read);
      if (!places[i][r]) return;
      if (!store) std::memcpy(rows[i][r], places[i][r], 16);
    }
  const bool transposed = form.flags & transposedFlag;
  for (int i = 0; i < form.k; ++i)
    for (int lane = 0; lane < laneCount; ++lane)
      for (int h = 0; h < 2; ++h) {
        const int row = transposed ? lane % 4 * 2 + h : lane / 4, column = transposed ? lane / 4 : lane % 4 * 2 + h;
        if (store)
          rows[i][row][column] = static_cast<uint16_t>(
              rawElement(warp.frame, operands.ins.data() + 1 + i, Element::f16, lane, static_cast<uint32_t>(h)));
        else
          putRaw(warp.frame, operands.outs.data() + i, Element::f16, lane, static_cast<uint32_t>(h), rows[i][row][column]);
      }
  for (int i = 0; i < form.k && store; ++i)
    for (int r = 0; r < 8; ++r) std::memcpy(places[i][r], rows[i][r], 16);
}
void takeLoadMatrices(Warp& warp, const Inst* inst, uint32_t) { takeMatrixRows(warp, inst, false); }
void takeStoreMatrices(Warp& warp, const Inst* inst, uint32_t) { takeMatrixRows(warp, inst, true); }

void takeTranspose(Warp& warp, const Inst* inst, uint32_t) {
  if (!wholeWarp(warp, inst)) return;
  const WideOperands& operands = operandsOf(inst);
  uint16_t matrix[8][8];
  for (int lane = 0; lane < laneCount; ++lane)
    for (uint32_t h = 0; h < 2; ++h)
      matrix[lane / 4][lane % 4 * 2 + h] =
          static_cast<uint16_t>(rawElement(warp.frame, operands.ins.data(), Element::f16, lane, h));
  for (int lane = 0; lane < laneCount; ++lane)
    for (uint32_t h = 0; h < 2; ++h)
      putRaw(warp.frame, operands.outs.data(), Element::f16, lane, h, matrix[lane % 4 * 2 + h][lane / 4]);
}

// Diverged lanes reconverge before the instruction is executed.
template <void (*Take)(Warp&, const Inst*, uint32_t)>
const Inst* together(Warp& warp, const Inst* inst) {
  static constexpr WarpSync collectiveSync{[](Warp&, const Inst*) {}, Take};
  const Inst* next = warp.warpSync(inst, collectiveSync, matrixKind, ~0u);
  return warp.block().grid().stopped ? nullptr : next;
}

}  // namespace

const Inst* multiplyMatrices(Warp& warp, const Inst* inst) { return together<takeMma>(warp, inst); }
const Inst* multiplyQuads(Warp& warp, const Inst* inst) { return together<takeQuads>(warp, inst); }
const Inst* multiplyFragments(Warp& warp, const Inst* inst) { return together<takeWmma>(warp, inst); }
const Inst* loadFragment(Warp& warp, const Inst* inst) { return together<takeLoadFragment>(warp, inst); }
const Inst* storeFragment(Warp& warp, const Inst* inst) { return together<takeStoreFragment>(warp, inst); }
const Inst* loadMatrices(Warp& warp, const Inst* inst) { return together<takeLoadMatrices>(warp, inst); }
const Inst* storeMatrices(Warp& warp, const Inst* inst) { return together<takeStoreMatrices>(warp, inst); }
const Inst* transposeMatrix(Warp& warp, const Inst* inst) { return together<takeTranspose>(warp, inst); }

}  // namespace vgpu::emulator
