#include "stub/emulator/ptx/run/mbarrier.h"

#include <cstring>

#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

// The content of an mbarrier object. The layout is our own: programs access it only by mbarrier instructions.
struct Word {
  uint32_t transactions = 0;  // bytes still expected, modulo 2^22
  uint32_t pending = 0, count = 0;
  bool phase = false;

  static constexpr uint64_t transactionBits = 22, countBits = 20;
  static Word of(uint64_t bits) {
    constexpr uint64_t counts = (1 << countBits) - 1;
    return {static_cast<uint32_t>(bits & ((1 << transactionBits) - 1)), static_cast<uint32_t>(bits >> 22 & counts),
            static_cast<uint32_t>(bits >> 42 & counts), (bits >> 62 & 1) != 0};
  }
  uint64_t bits() const {
    return (transactions & ((1 << transactionBits) - 1)) | uint64_t{pending} << 22 | uint64_t{count} << 42 |
           uint64_t{phase} << 62;
  }
  void finishPhase() {
    if (pending != 0 || (transactions & ((1 << transactionBits) - 1)) != 0) return;
    phase = !phase;
    pending = count;
  }
};

// Calls `change(word, operand)` for each lane in turn; its result goes to the output.
template <class Out, class Operand, class F>
const Inst* onBarrier(Warp& warp, const Inst* inst, F change) {
  std::byte* host[laneCount];
  const Pattern pattern = resolve(warp, inst, AccessForm::of(inst), 8, Access::orderedWrite, host);
  if (pattern == Pattern::failed) return nullptr;
  auto* const out = warp.lanes<Out>(inst->op[0]);
  const auto* const operand = warp.lanes<Operand>(inst->op[2]);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    std::byte* const place = pattern == Pattern::contiguous ? host[0] + 8 * lane : host[lane];
    uint64_t bits;
    std::memcpy(&bits, place, 8);
    Word word = Word::of(bits);
    out[lane] = static_cast<Out>(change(word, operand[lane], bits));
    bits = word.bits();
    std::memcpy(place, &bits, 8);
  }
  return inst + 1;
}

template <bool Drop>
uint64_t arrive(Word& word, uint32_t count, uint64_t before) {
  if (Drop) word.count -= std::min(count, word.count);
  word.pending -= std::min(count, word.pending);
  word.finishPhase();
  return before;
}

}  // namespace

const Inst* mbarrierInit(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, [](Word& word, uint32_t count, uint64_t) {
    word = {0, count, count, false};
    return 0;
  });
}
const Inst* mbarrierArrive(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, arrive<false>);
}
const Inst* mbarrierArriveDrop(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, arrive<true>);
}
template <bool Drop>
uint64_t arriveExpecting(Word& word, uint32_t bytes, uint64_t before) {
  word.transactions += bytes;
  return arrive<Drop>(word, 1, before);
}
const Inst* mbarrierArriveExpect(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, arriveExpecting<false>);
}
const Inst* mbarrierDropExpect(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, arriveExpecting<true>);
}
const Inst* mbarrierExpect(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, [](Word& word, uint32_t bytes, uint64_t) {
    word.transactions += bytes;
    return 0;
  });
}
const Inst* mbarrierComplete(Warp& warp, const Inst* inst) {
  return onBarrier<uint64_t, uint32_t>(warp, inst, [](Word& word, uint32_t bytes, uint64_t) {
    word.transactions -= bytes;
    word.finishPhase();
    return 0;
  });
}
bool completeTransaction(Warp& warp, const Inst* inst, int lane, uint64_t address, uint32_t bytes) {
  std::byte* const place = warp.access(inst, lane, address, 8, 8, Access::orderedWrite);
  if (!place) return false;
  uint64_t bits;
  std::memcpy(&bits, place, 8);
  Word word = Word::of(bits);
  word.transactions -= bytes;
  word.finishPhase();
  bits = word.bits();
  std::memcpy(place, &bits, 8);
  return true;
}
// `isOver` returns whether the phase that a lane tests has completed.
template <class Operand, class F>
const Inst* test(Warp& warp, const Inst* inst, F isOver) {
  bool isOpen = false;
  const Inst* const next = onBarrier<uint32_t, Operand>(warp, inst, [&](Word& word, Operand operand, uint64_t) {
    const bool over = isOver(word, operand);
    isOpen |= !over;
    return over ? ~0u : 0;
  });
  isOpen ? waiting(warp) : spinning(warp);
  return next;
}
const Inst* mbarrierTestState(Warp& warp, const Inst* inst) {
  return test<uint64_t>(warp, inst, [](const Word& word, uint64_t state) { return Word::of(state).phase != word.phase; });
}
const Inst* mbarrierTestParity(Warp& warp, const Inst* inst) {
  return test<uint32_t>(warp, inst, [](const Word& word, uint32_t parity) { return (parity & 1) != word.phase; });
}
const Inst* mbarrierPending(Warp& warp, const Inst* inst) {
  const uint64_t* state = warp.lanes<uint64_t>(inst->op[1]);
  writeLanes<uint32_t>(warp, inst->op[0], [&](int lane) { return Word::of(state[lane]).pending; });
  return inst + 1;
}

const Inst* copyAsync(Warp& warp, const Inst* inst) {
  const uint64_t* to = warp.lanes<uint64_t>(inst->op[0]);
  const uint64_t* from = warp.lanes<uint64_t>(inst->op[1]);
  const uint32_t* reads = warp.lanes<uint32_t>(inst->op[2]);
  const uint32_t* sizes = warp.lanes<uint32_t>(inst->op[3]);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint32_t bytes = sizes[lane], read = std::min(reads[lane], bytes);
    const auto align = bytes > 16 ? 16 : std::max(bytes, 1u);
    if (bytes == 0) continue;
    std::byte* const target = warp.access(inst, lane, to[lane], bytes, align, Access::write);
    if (!target) return nullptr;
    const std::byte* const source = read ? warp.access(inst, lane, from[lane], read, align, Access::read) : nullptr;
    if (read && !source) return nullptr;
    if (read) std::memmove(target, source, read);
    std::memset(target + read, 0, bytes - read);
  }
  return inst + 1;
}

}  // namespace vgpu::emulator
