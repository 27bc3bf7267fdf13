// Atomic operations. Blocks run on different host threads, so these are host atomics, lane after lane.
#include <cmath>
#include <cstring>

#include "stub/emulator/ptx/lanes/half-values.h"
#include "stub/emulator/ptx/lanes/whole-numbers.h"
#include "stub/emulator/ptx/run/access.h"
#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

template <class T>
T* at(std::byte* host) {
  return static_cast<T*>(static_cast<void*>(host));
}

template <class T>
T exchange(T, T b) {
  return b;
}
// inc wraps past b to 0; dec wraps from 0, and from above b, to b (PTX ISA, atom).
uint32_t inc(uint32_t old, uint32_t b) { return old >= b ? 0 : old + 1; }
uint32_t dec(uint32_t old, uint32_t b) { return old == 0 || old > b ? b : old - 1; }

float canonical(float value) { return std::isnan(value) ? __builtin_bit_cast(float, 0x7fffffffu) : value; }
uint32_t addFloat(uint32_t old, uint32_t b) {
  return __builtin_bit_cast(uint32_t, canonical(__builtin_bit_cast(float, old) + __builtin_bit_cast(float, b)));
}
// On global memory, unlike shared, subnormal operands and results are flushed (PTX ISA, atom).
uint32_t addFlushed(uint32_t old, uint32_t b) {
  const auto flush = [](uint32_t bits) { return (bits & 0x7f800000) ? bits : bits & 0x80000000; };
  return flush(addFloat(flush(old), flush(b)));
}
uint64_t addDouble(uint64_t old, uint64_t b) {
  return __builtin_bit_cast(uint64_t, __builtin_bit_cast(double, old) + __builtin_bit_cast(double, b));
}
uint16_t addHalf(uint16_t old, uint16_t b) { return halfBits(halfValue(old) + halfValue(b)); }
uint16_t addBrain(uint16_t old, uint16_t b) { return brainSum(old, b); }
// The smaller or larger value; a NaN only if both are, and -0 is less than 0.
template <float (*Value)(uint16_t), bool Largest>
uint16_t extreme(uint16_t old, uint16_t b) {
  const float x = Value(old), y = Value(b);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) ? (std::isnan(y) ? 0x7fff : b) : old;
  const bool oldIsLess = x < y || (x == y && (old & 0x8000));
  return oldIsLess != Largest ? old : b;
}
constexpr auto leastHalf = extreme<halfValue, false>, mostHalf = extreme<halfValue, true>;
constexpr auto leastBrain = extreme<brainValue, false>, mostBrain = extreme<brainValue, true>;
template <uint16_t (*F)(uint16_t, uint16_t)>
uint32_t each(uint32_t old, uint32_t b) {
  const uint32_t hi = F(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
  return F(static_cast<uint16_t>(old), static_cast<uint16_t>(b)) | hi << 16;
}

template <class T>
using Lane = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T, T (*F)(T, T)>
T apply(std::byte* host, T b) {
  T* const place = at<T>(host);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(place, &old, F(old, b), false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
  }
  return old;
}

// Calls each(lane, place) for the active lanes, in order, with the place of the lane's `bytes`.
template <class F>
const Inst* atPlaces(Warp& warp, const Inst* inst, uint32_t bytes, F each) {
  std::byte* host[laneCount];
  const Pattern pattern = resolve(warp, inst, AccessForm::of(inst), bytes, Access::update, host);
  if (pattern == Pattern::failed) return nullptr;
  spinning(warp);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    each(lane, pattern == Pattern::contiguous ? host[0] + size_t{bytes} * lane : host[lane]);
  }
  return inst + 1;
}

template <class T, T (*F)(T, T)>
const Inst* atomic(Warp& warp, const Inst* inst) {
  auto* const out = warp.lanes<Lane<T>>(inst->op[0]);
  const auto* const b = warp.lanes<Lane<T>>(inst->op[2]);
  return atPlaces(warp, inst, sizeof(T), [&](int lane, std::byte* place) {
    out[lane] = static_cast<Lane<T>>(apply<T, F>(place, static_cast<T>(b[lane])));
  });
}

const Inst* addFloats(Warp& warp, const Inst* inst) {
  auto* const out = warp.lanes<uint32_t>(inst->op[0]);
  const auto* const b = warp.lanes<uint32_t>(inst->op[2]);
  std::byte* const shared = warp.block().shared();
  return atPlaces(warp, inst, 4, [&](int lane, std::byte* place) {
    const bool isShared = place >= shared && place < shared + warp.block().sharedBytes();
    out[lane] = isShared ? apply<uint32_t, addFloat>(place, b[lane]) : apply<uint32_t, addFlushed>(place, b[lane]);
  });
}

template <class T>
const Inst* compareAndSwap(Warp& warp, const Inst* inst) {
  auto* const out = warp.lanes<Lane<T>>(inst->op[0]);
  const auto* const b = warp.lanes<Lane<T>>(inst->op[2]);
  const auto* const c = warp.lanes<Lane<T>>(inst->op[3]);
  bool changed = false;  // by any lane; if by none, the warp probably waits for a lock
  const Inst* const next = atPlaces(warp, inst, sizeof(T), [&](int lane, std::byte* place) {
    auto expected = static_cast<T>(b[lane]);
    changed |= __atomic_compare_exchange_n(at<T>(place), &expected, static_cast<T>(c[lane]), false, __ATOMIC_ACQ_REL,
                                           __ATOMIC_ACQUIRE);
    out[lane] = static_cast<Lane<T>>(expected);
  });
  if (!changed) waiting(warp);
  return next;
}

// 128 bits: not every x86-64 processor has an instruction, so one lock serves all of them.
struct Wide {
  uint64_t lo, hi;
};
std::mutex& wideMutex() {
  static std::mutex mutex;
  return mutex;
}

template <bool Compare>
const Inst* swapWide(Warp& warp, const Inst* inst) {
  return atPlaces(warp, inst, sizeof(Wide), [&](int lane, std::byte* place) {
    const Wide b = warp.lanes<Wide>(inst->op[2])[lane];
    const std::lock_guard lock(wideMutex());
    Wide old;
    std::memcpy(&old, place, sizeof old);
    if (!Compare)
      std::memcpy(place, &b, sizeof b);
    else if (old.lo == b.lo && old.hi == b.hi)
      std::memcpy(place, &warp.lanes<Wide>(inst->op[3])[lane], sizeof(Wide));
    warp.lanes<Wide>(inst->op[0])[lane] = old;
  });
}

template <class T, T (*F)(T, T)>
void reduce(std::byte* place, const std::byte* value) {
  T operand;
  std::memcpy(&operand, value, sizeof operand);
  apply<T, F>(place, operand);
}

template <class T, T (*F)(T, T)>
constexpr AtomicRow row(std::string_view name) {
  return {name, sizeof(T), 1, atomic<T, F>, reduce<T, F>};
}

constexpr AtomicRow atomicRows[] = {
    row<uint32_t, add<uint32_t>>("add.u32"),
    row<uint32_t, add<uint32_t>>("add.s32"),
    row<uint64_t, add<uint64_t>>("add.u64"),
    row<uint64_t, add<uint64_t>>("add.s64"),
    {"add.f32", 4, 1, addFloats, reduce<uint32_t, addFloat>},
    row<uint64_t, addDouble>("add.f64"),
    row<uint16_t, addHalf>("add.f16"),
    row<uint16_t, addBrain>("add.bf16"),
    row<uint32_t, each<addHalf>>("add.f16x2"),
    row<uint32_t, each<addBrain>>("add.bf16x2"),
    row<uint16_t, leastHalf>("min.f16"),
    row<uint16_t, mostHalf>("max.f16"),
    row<uint32_t, each<leastHalf>>("min.f16x2"),
    row<uint32_t, each<mostHalf>>("max.f16x2"),
    row<uint16_t, leastBrain>("min.bf16"),
    row<uint16_t, mostBrain>("max.bf16"),
    row<uint32_t, each<leastBrain>>("min.bf16x2"),
    row<uint32_t, each<mostBrain>>("max.bf16x2"),
    row<uint32_t, least<uint32_t>>("min.u32"),
    row<int32_t, least<int32_t>>("min.s32"),
    row<uint64_t, least<uint64_t>>("min.u64"),
    row<int64_t, least<int64_t>>("min.s64"),
    row<uint32_t, most<uint32_t>>("max.u32"),
    row<int32_t, most<int32_t>>("max.s32"),
    row<uint64_t, most<uint64_t>>("max.u64"),
    row<int64_t, most<int64_t>>("max.s64"),
    row<uint32_t, inc>("inc.u32"),
    row<uint32_t, dec>("dec.u32"),
    row<uint32_t, bitAnd<uint32_t>>("and.b32"),
    row<uint64_t, bitAnd<uint64_t>>("and.b64"),
    row<uint32_t, bitOr<uint32_t>>("or.b32"),
    row<uint64_t, bitOr<uint64_t>>("or.b64"),
    row<uint32_t, bitXor<uint32_t>>("xor.b32"),
    row<uint64_t, bitXor<uint64_t>>("xor.b64"),
    {"exch.b32", 4, 1, atomic<uint32_t, exchange<uint32_t>>},
    {"exch.b64", 8, 1, atomic<uint64_t, exchange<uint64_t>>},
    {"exch.b128", 16, 1, swapWide<false>},
    {"cas.b16", 2, 2, compareAndSwap<uint16_t>},
    {"cas.b32", 4, 2, compareAndSwap<uint32_t>},
    {"cas.b64", 8, 2, compareAndSwap<uint64_t>},
    {"cas.b128", 16, 2, swapWide<true>},
};

}  // namespace

const AtomicRow* findAtomic(std::string_view name) {
  for (const AtomicRow& each : atomicRows)
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace vgpu::emulator
