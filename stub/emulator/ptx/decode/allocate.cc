// Register allocation: liveness over basic blocks, then one scan over the live intervals (Poletto and Sarkar, "Linear Scan Register
// Allocation"). It keeps a warp's frame within the host's caches. Correctness requires only that two values that are live at the same time
// never share a place. Each lane owns a column of every register, so only a single thread's control flow matters, however its warp
// diverges.
#include <algorithm>
#include <map>
#include <queue>

#include "stub/emulator/ptx/decode/ir.h"

namespace vgpu::emulator {
namespace {

constexpr uint64_t mostBits = uint64_t{1} << 28;  // size of the liveness sets; a larger function gets a place of its own for each register

struct Interval {
  int begin = -1, end = -1;
  void extend(int at) {
    if (begin < 0 || at < begin) begin = at;
    end = std::max(end, at);
  }
};

class Liveness {
 public:
  Liveness(const Ir& ir, const std::vector<BasicBlock>& blocks)
      : ir(ir), blocks(blocks), intervals(ir.registers.size()) {
    findGlobals();
    local();
    if (!globals.empty()) acrossBlocks();
  }

 private:
  const Ir& ir;
  const std::vector<BasicBlock>& blocks;

 public:
  std::vector<Interval> intervals;
  bool feasible = true;

 private:
  // Registers that some block reads before it writes them: only these live across blocks.
  void findGlobals() {
    dense.assign(ir.registers.size(), -1);
    std::vector<int> writtenIn(ir.registers.size(), -1);
    for (size_t b = 0; b < blocks.size(); ++b)
      for (int i = blocks[b].begin; i < blocks[b].end; ++i) {
        const IrInst& inst = ir.code[i];
        const auto exposed = [&](const Value& value) {
          if (value.kind != Value::Kind::reg || writtenIn[value.id] == static_cast<int>(b) || dense[value.id] >= 0)
            return;
          dense[value.id] = static_cast<int>(globals.size());
          globals.push_back(value.id);
        };
        forOperands(inst, exposed, [&](const Value& value) {
          if (inst.guarded) exposed(value);
          if (value.kind == Value::Kind::reg) writtenIn[value.id] = static_cast<int>(b);
        });
      }
  }

  void local() {
    for (size_t i = 0; i < ir.code.size(); ++i) {
      const auto touch = [&](const Value& value) {
        if (value.kind == Value::Kind::reg) intervals[value.id].extend(static_cast<int>(i));
      };
      forOperands(ir.code[i], touch, touch);
    }
  }

  void acrossBlocks() {
    const size_t words = (globals.size() + 63) / 64;
    if (uint64_t{words} * 64 * blocks.size() > mostBits) {
      feasible = false;
      return;
    }
    std::vector<uint64_t> in(words * blocks.size()), kill(words * blocks.size());
    const auto set = [words](std::vector<uint64_t>& bits, size_t block, int id) {
      bits[block * words + id / 64] |= uint64_t{1} << (id % 64);
    };
    for (size_t b = 0; b < blocks.size(); ++b)
      for (int i = blocks[b].end - 1; i >= blocks[b].begin; --i) {
        const IrInst& inst = ir.code[i];
        const auto global = [&](const Value& value) { return value.kind == Value::Kind::reg ? dense[value.id] : -1; };
        const auto nothing = [](const Value&) {};
        forOperands(inst, nothing, [&](const Value& value) {
          const int id = global(value);
          if (id < 0 || inst.guarded) return;
          set(kill, b, id);
          in[b * words + id / 64] &= ~(uint64_t{1} << (id % 64));
        });
        const auto use = [&](const Value& value) {
          if (global(value) >= 0) set(in, b, global(value));
        };
        forOperands(inst, use, [&](const Value& value) {
          if (inst.guarded) use(value);
        });
      }
    solve(in, kill, words);
    for (size_t b = 0; b < blocks.size(); ++b) {
      extendAll(in, b, words, blocks[b].begin);
      for (const int n : blocks[b].next) extendAll(in, static_cast<size_t>(n), words, blocks[b].end - 1);
    }
  }

  void solve(std::vector<uint64_t>& in, const std::vector<uint64_t>& kill, size_t words) const {
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t b = blocks.size(); b-- > 0;)
        for (const int n : blocks[b].next)
          for (size_t w = 0; w < words; ++w) {
            const uint64_t more = in[n * words + w] & ~kill[b * words + w] & ~in[b * words + w];
            in[b * words + w] |= more;
            changed |= more != 0;
          }
    }
  }

  void extendAll(const std::vector<uint64_t>& in, size_t block, size_t words, int at) {
    for (size_t w = 0; w < words; ++w)
      for (uint64_t bits = in [block * words + w]; bits; bits &= bits - 1)
        intervals[globals[w * 64 + static_cast<size_t>(__builtin_ctzll(bits))]].extend(at);
  }

  std::vector<int> dense;  // register -> its index among the globals
  std::vector<int> globals;
};

}  // namespace

uint32_t allocateRegisters(const Ir& ir, const std::vector<BasicBlock>& blocks, std::vector<int32_t>& offsets,
                           uint32_t& words) {
  Liveness liveness(ir, blocks);
  if (!liveness.feasible)
    for (Interval& interval : liveness.intervals) interval = {0, static_cast<int>(ir.code.size())};
  std::vector<int> order;
  for (size_t r = 0; r < ir.registers.size(); ++r)
    if (liveness.intervals[r].begin >= 0) order.push_back(static_cast<int>(r));
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return liveness.intervals[a].begin < liveness.intervals[b].begin; });

  offsets.assign(ir.registers.size(), 0);
  std::map<uint32_t, std::vector<int32_t>> free;  // by bytes per lane
  using Ending = std::pair<int, int>;             // end of a live interval, and its register
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> active;
  uint32_t top = 0, live = 0;
  words = 0;
  for (const int r : order) {
    while (!active.empty() && active.top().first < liveness.intervals[r].begin) {
      const int ended = active.top().second;
      free[ir.registers[ended]].push_back(offsets[ended]);
      live -= ir.registers[ended] / 4;
      active.pop();
    }
    auto& spare = free[ir.registers[r]];
    if (spare.empty()) {
      offsets[r] = static_cast<int32_t>(top);
      top += ir.registers[r] * uint32_t{laneCount};
      if (top > (1u << 30))
        throw PtxError(PtxError::Kind::unsupported, 0, "a function of more than 8 million live registers");
    } else {
      offsets[r] = spare.back();
      spare.pop_back();
    }
    live += ir.registers[r] / 4;
    words = std::max(words, live);
    active.push({liveness.intervals[r].end, r});
  }
  return top;
}

}  // namespace vgpu::emulator
