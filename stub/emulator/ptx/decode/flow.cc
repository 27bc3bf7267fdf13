// Basic blocks, and the points where diverged lanes reconverge: immediate post-dominators (Cooper, Harvey, Kennedy, "A Simple, Fast
// Dominance Algorithm").
#include <algorithm>

#include "stub/emulator/ptx/decode/ir.h"

namespace vgpu::emulator {
namespace {

using Flow = IrInst::Flow;

bool endsBlock(const IrInst& inst) { return inst.flow >= Flow::jump || inst.joinAfter; }

std::vector<int> leaders(const Ir& ir) {
  std::vector<int> starts{0};
  for (const int at : ir.labels)
    if (at >= 0 && at < static_cast<int>(ir.code.size())) starts.push_back(at);
  for (size_t i = 0; i + 1 < ir.code.size(); ++i)
    if (endsBlock(ir.code[i])) starts.push_back(static_cast<int>(i) + 1);
  std::sort(starts.begin(), starts.end());
  starts.erase(std::unique(starts.begin(), starts.end()), starts.end());
  return starts;
}

class PostDominators {
 public:
  // `isExit`: the blocks at which the function ends; the virtual exit has the number blocks.size().
  PostDominators(size_t count, const std::vector<std::vector<int>>& next, const std::vector<bool>& isExit)
      : exit(static_cast<int>(count)), next(next), isExit(isExit), number(count + 1, -1), parent(count + 1, -1) {
    std::vector<std::vector<int>> previous(count + 1);
    for (size_t b = 0; b < count; ++b) {
      for (const int n : next[b]) previous[n].push_back(static_cast<int>(b));
      if (isExit[b]) previous[exit].push_back(static_cast<int>(b));
    }
    order(previous);
    solve();
  }
  // -1 if the block has no common successor.
  int of(int block) const { return parent[block] == exit ? -1 : parent[block]; }

 private:
  void order(const std::vector<std::vector<int>>& previous) {
    std::vector<std::pair<int, size_t>> stack{{exit, 0}};
    std::vector<bool> seen(exit + 1);
    seen[exit] = true;
    while (!stack.empty()) {
      auto& [block, at] = stack.back();
      if (at < previous[block].size()) {
        const int following = previous[block][at++];
        if (!seen[following]) {
          seen[following] = true;
          stack.push_back({following, 0});
        }
      } else {
        number[block] = static_cast<int>(postorder.size());
        postorder.push_back(block);
        stack.pop_back();
      }
    }
  }

  int intersect(int a, int b) const {
    while (a != b) {
      while (number[a] < number[b]) a = parent[a];
      while (number[b] < number[a]) b = parent[b];
    }
    return a;
  }

  void solve() {
    parent[exit] = exit;
    for (bool changed = true; changed;) {
      changed = false;
      for (auto block = postorder.rbegin(); block != postorder.rend(); ++block) {
        if (*block == exit) continue;
        int found = isExit[*block] ? exit : -1;
        for (const int n : next[*block])
          if (parent[n] >= 0) found = found < 0 ? n : intersect(n, found);
        if (found != parent[*block]) {
          parent[*block] = found;
          changed = true;
        }
      }
    }
  }

  int exit;
  const std::vector<std::vector<int>>& next;
  const std::vector<bool>& isExit;
  std::vector<int> number, parent, postorder;
};

bool isExitBlock(const Ir& ir, const BasicBlock& block) { return ir.code[block.end - 1].flow == Flow::exit; }

void findJoins(const Ir& ir, std::vector<BasicBlock>& blocks) {
  const size_t count = blocks.size();
  std::vector<std::vector<int>> all(count), surviving(count);
  std::vector<bool> exits(count), mainExit(count);
  int last = -1;
  for (size_t b = 0; b < count; ++b) {
    all[b] = blocks[b].next;
    exits[b] = blocks[b].next.empty();
    if (isExitBlock(ir, blocks[b])) last = static_cast<int>(b);
  }
  const PostDominators full(count, all, exits);
  // The others need not wait for threads that exit early: edges that lead straight to an exit are ignored, so that the remaining threads
  // reconverge earlier.
  for (size_t b = 0; b < count; ++b)
    for (const int n : blocks[b].next)
      if (blocks[b].next.size() == 1 || !(isExitBlock(ir, blocks[n]) && blocks[n].end - blocks[n].begin == 1))
        surviving[b].push_back(n);
  if (last >= 0) mainExit[last] = true;
  const PostDominators survivors(count, surviving, mainExit);
  for (size_t b = 0; b < count; ++b) {
    if (blocks[b].next.size() < 2) continue;
    int join = full.of(static_cast<int>(b));
    if (join < 0 || (isExitBlock(ir, blocks[join]) && blocks[join].end - blocks[join].begin == 1)) {
      const int earlier = survivors.of(static_cast<int>(b));
      if (earlier >= 0) join = earlier;
    }
    blocks[b].join = join;
    if (join >= 0) blocks[join].isJoin = true;
  }
}

}  // namespace

std::vector<BasicBlock> findBlocks(const Ir& ir) {
  const std::vector<int> starts = leaders(ir);
  std::vector<int> blockAt(ir.code.size() + 1, -1);
  std::vector<BasicBlock> blocks(starts.size());
  for (size_t b = 0; b < starts.size(); ++b) {
    blocks[b].begin = starts[b];
    blocks[b].end = b + 1 < starts.size() ? starts[b + 1] : static_cast<int>(ir.code.size());
    blockAt[starts[b]] = static_cast<int>(b);
  }
  for (size_t b = 0; b < blocks.size(); ++b) {
    const IrInst& final = ir.code[blocks[b].end - 1];
    auto& next = blocks[b].next;
    const auto link = [&](int block) {
      if (std::find(next.begin(), next.end(), block) == next.end()) next.push_back(block);
    };
    const bool falls = final.flow == Flow::next || final.flow == Flow::guard || final.flow == Flow::jumpIf;
    if (falls && b + 1 < blocks.size()) link(static_cast<int>(b) + 1);
    if (final.flow == Flow::jump || final.flow == Flow::jumpIf) link(blockAt[ir.labels[final.label]]);
    if (final.flow == Flow::jumpIndexed)
      for (const int label : ir.tables[final.table]) link(blockAt[ir.labels[label]]);
  }
  findJoins(ir, blocks);
  for (size_t b = 0; b + 1 < blocks.size(); ++b)
    if (ir.code[blocks[b].end - 1].joinAfter) blocks[b + 1].isJoin = true;
  return blocks;
}

}  // namespace vgpu::emulator
