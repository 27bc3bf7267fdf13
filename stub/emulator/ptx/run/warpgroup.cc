#include "stub/emulator/ptx/run/warpgroup.h"

#include <cstring>
#include <memory>

#include "stub/emulator/ptx/lanes/matrix-product.h"
#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/sparse.h"

namespace vgpu::emulator {
namespace {

constexpr uint32_t warpgroupKind = 7;  // a kind of WarpSync, after the one in matrix.cc
constexpr uint32_t rowsOfWarp = 16, rowsOfGroup = 64;
constexpr uint32_t mostColumns = 256, mostDepth = 256;

const WideOperands& operandsOf(const Inst* inst) { return *static_cast<const WideOperands*>(inst->aux); }

// PTX ISA, "Matrix Descriptor Format": the layout of a matrix in shared memory, in units of 16 bytes.
struct Descriptor {
  uint32_t start, leading, stride;  // bytes
  uint32_t unitsPerRow;             // 1: not swizzled; 2, 4 or 8: a row of 32, 64 or 128 bytes
  uint32_t baseRow;                 // of the swizzle pattern

  explicit Descriptor(uint64_t bits)
      : start(field(bits, 0)), leading(field(bits, 16)), stride(field(bits, 32)), baseRow(bits >> 49 & 7) {
    constexpr uint32_t units[] = {1, 8, 4, 2};
    unitsPerRow = units[bits >> 62];
  }
  // The offset of unit `unit` along k in row `row` (of M or N), if k is the major dimension.
  uint32_t alongDepth(uint32_t row, uint32_t unit) const {
    return place(row % 8 * unitsPerRow * 16 + row / 8 * stride + unit % unitsPerRow * 16 + unit / unitsPerRow * leading);
  }
  // The offset of unit `unit` along M or N at depth `k`, if M or N is the major dimension.
  uint32_t acrossDepth(uint32_t unit, uint32_t k) const {
    const uint32_t outer = unitsPerRow == 1 ? stride : leading, deeper = unitsPerRow == 1 ? leading : stride;
    return place(unit % unitsPerRow * 16 + unit / unitsPerRow * outer + k % 8 * unitsPerRow * 16 + k / 8 * deeper);
  }

 private:
  static uint32_t field(uint64_t bits, int at) { return static_cast<uint32_t>(bits >> at & 0x3fff) << 4; }
  // The swizzle exchanges units of a row by the row's number, which is in the address bits from 7 on.
  uint32_t place(uint32_t offset) const {
    const uint32_t address = start + offset;
    return address ^ ((((address >> 7) - baseRow) & (unitsPerRow - 1)) << 4);
  }
};

// The element of a row at a depth goes to base[row * perRow + depth * perDepth].
struct Target {
  double* base;
  size_t perRow, perDepth;
};

// Reads a matrix in shared memory. False after a fault.
bool readShared(Warp& warp, const Inst* inst, uint64_t bits, Element e, uint32_t rows, uint32_t depth, bool transposed,
                Target to) {
  const Descriptor descriptor(bits);
  const uint32_t perWord = 32 / bitsOf(e), perUnit = 4 * perWord, units = (transposed ? rows : depth) / perUnit,
                 lines = transposed ? depth : rows;
  const size_t perLine = transposed ? to.perDepth : to.perRow, along = transposed ? to.perRow : to.perDepth;
  for (uint32_t line = 0; line < lines; ++line)
    for (uint32_t unit = 0; unit < units; ++unit) {
      const uint32_t offset = transposed ? descriptor.acrossDepth(unit, line) : descriptor.alongDepth(line, unit);
      const std::byte* const from = warp.access(inst, 0, sharedWindow | offset, 16, 16, Access::read);
      if (!from) return false;
      uint32_t words[4];
      std::memcpy(words, from, sizeof words);
      double* const first = to.base + line * perLine + unit * perUnit * along;
      for (uint32_t i = 0; i < 4; ++i) decodeWord(e, words[i], first + i * perWord * along, along);
    }
  return true;
}

struct Product {
  double a[rowsOfGroup * mostDepth], b[mostDepth * mostColumns], c[rowsOfGroup * mostColumns];
};

class Multiplication {
 public:
  Multiplication(Warp& warp, const Inst* inst, const Warpgroup& group)
      : warp(warp), inst(inst), group(group), form(std::bit_cast<WarpgroupForm>(inst->imm)) {
    static thread_local const auto space = std::make_unique<Product>();
    product = space.get();
    const WideOperands& operands = operandsOf(inst);
    outs = operands.outs.data();
    bDescriptor = operands.ins.data() + operands.outs.size();
    aOperands = bDescriptor + 2;
    stored = flag(aSparse) ? form.k / 2u : form.k;
  }

  void run() {
    readAccumulators();
    if (!readA() || !readB()) return;
    matrixProducts().exact(product->c, product->a, product->b, rowsOfGroup, form.n, form.k);
    for (uint32_t w = 0; w < warpgroupWarps; ++w)
      for (int lane = 0; lane < laneCount; ++lane)
        for (uint32_t i = 0; i < accumulators(); ++i)
          putValue(group.frames[w], outs, form.d, lane, i, sumAt(w, lane, i), flag(sumSaturates));
  }

 private:
  bool flag(uint8_t which) const { return (form.flags & which) != 0; }
  uint32_t accumulators() const { return rowsOfWarp * form.n / laneCount; }
  double& sumAt(uint32_t w, int lane, uint32_t index) {
    const Position at = inAccumulator(lane, index, rowsOfWarp);
    return product->c[(w * rowsOfWarp + at.row) * form.n + at.column];
  }
  template <class T>
  const T* lanesOf(uint32_t w, int32_t slot) const {
    return static_cast<const T*>(static_cast<const void*>(group.frames[w] + slot));
  }

  void readAccumulators() {
    for (uint32_t w = 0; w < warpgroupWarps; ++w) {
      const uint32_t* const scale = lanesOf<uint32_t>(w, bDescriptor[1]);
      for (int lane = 0; lane < laneCount; ++lane)
        for (uint32_t i = 0; i < accumulators(); ++i)
          sumAt(w, lane, i) = scale[lane] ? valueAt(group.frames[w], outs, form.d, lane, i) : 0.0;
    }
  }

  bool readA() {
    if (!flag(aInRegisters)) {
      const Target to{product->a, stored, 1};
      if (!readShared(warp, inst, lanesOf<uint64_t>(0, aOperands[0])[0], form.a, rowsOfGroup, stored, flag(aTransposed), to))
        return false;
    } else {
      const uint32_t per = perRegister(form.a), registers = rowsOfWarp * stored / laneCount / per;
      for (uint32_t w = 0; w < warpgroupWarps; ++w)
        for (int lane = 0; lane < laneCount; ++lane)
          for (uint32_t r = 0; r < registers; ++r) {
            const Position at = inA(form.a, lane, r * per, rowsOfWarp);
            decodeWord(form.a, lanesOf<uint32_t>(w, aOperands[r])[lane],
                       product->a + (w * rowsOfWarp + at.row) * stored + at.column, 1);
          }
    }
    if (flag(aNegated)) negate(product->a, rowsOfGroup * stored);
    if (flag(aSparse)) expand();
    return true;
  }

  static void negate(double* values, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) values[i] = -values[i];
  }

  void expand() {
    const uint32_t metadata = flag(aInRegisters) ? rowsOfWarp * stored / laneCount / perRegister(form.a) : 1;
    double row[mostDepth];
    for (uint32_t r = rowsOfGroup; r-- > 0;) {  // last row first, because rows grow in place
      const uint32_t* const words = lanesOf<uint32_t>(r / rowsOfWarp, aOperands[metadata]);
      std::copy_n(product->a + r * stored, stored, row);
      expandSparseRow(form.a, row, product->a + r * form.k, form.k, words, form.selector, r % rowsOfWarp);
    }
  }

  bool readB() {
    const Target to{product->b, 1, form.n};
    if (!readShared(warp, inst, lanesOf<uint64_t>(0, bDescriptor[0])[0], form.b, form.n, form.k, flag(bTransposed), to))
      return false;
    if (flag(bNegated)) negate(product->b, uint32_t{form.k} * form.n);
    return true;
  }

  Warp& warp;
  const Inst* inst;
  const Warpgroup& group;
  const WarpgroupForm form;
  Product* product;
  const int32_t *outs, *bDescriptor, *aOperands;
  uint32_t stored;
};

const Inst* refuse(Warp& warp, const Inst* inst, const char* what) {
  return warp.fault(Fault::Kind::illegalInstruction, inst, warp.firstActive(), what);
}

}  // namespace

const Inst* multiplyWarpgroup(Warp& warp, const Inst* inst) {
  static constexpr WarpSync parted{[](Warp&, const Inst*) {},
                                   [](Warp& of, const Inst* at, uint32_t) {
                                     refuse(of, at, "a matrix instruction that not all threads of the warp execute");
                                   }};
  if (warp.live() != ~0u) return refuse(warp, inst, "a warpgroup instruction in a warp with fewer than 32 live threads");
  if (warp.active != ~0u) {
    const Inst* const next = warp.warpSync(inst, parted, warpgroupKind, ~0u);
    return warp.block().grid().stopped ? nullptr : next;
  }
  const uint32_t index = warp.index() / warpgroupWarps, member = warp.index() % warpgroupWarps;
  if ((index + 1) * warpgroupWarps * laneCount > warp.block().threads())
    return refuse(warp, inst, "a warpgroup instruction in a block whose last warpgroup has fewer than four warps");
  Warpgroup& group = warp.block().warpgroup(index);
  if (group.at && group.at != inst) return refuse(warp, inst, "the warps of a warpgroup execute different matrix instructions");
  group.at = inst;
  group.arrived |= 1u << member;
  group.frames[member] = warp.frame;
  if (group.arrived != (1u << warpgroupWarps) - 1)
    return warp.waitAtBarrier(inst + 1, firstWarpgroupIndex + static_cast<int>(index));
  Multiplication(warp, inst, group).run();
  if (warp.block().grid().stopped) return nullptr;
  warp.block().releaseWarpgroup(index);
  return inst + 1;
}

}  // namespace vgpu::emulator
