#include "stub/worker/continuations.h"

#include <algorithm>

namespace vgpu::stub {

void Continuations::add(unsigned device, std::vector<Mark> marks, Run run) {
  waiting.push_back({device, std::move(marks), std::move(run)});
}

bool Continuations::has(unsigned device) const {
  return std::any_of(waiting.begin(), waiting.end(), [&](auto& each) { return each.device == device; });
}

void Continuations::poll(Devices devices) {
  auto hasPassed = [&](const Mark& mark) { return devices[mark.device]->hasPassed(mark.number); };
  if (waiting.empty()) return;
  // Each is taken out before it runs: it may ask what else is left, and add others behind `last`.
  auto last = std::prev(waiting.end());
  for (auto at = waiting.begin();;) {
    bool isLast = at == last;
    auto next = std::next(at);
    if (std::all_of(at->marks.begin(), at->marks.end(), hasPassed)) {
      std::list<Continuation> due;
      due.splice(due.end(), waiting, at);
      due.front().run(devices[due.front().device]->fault());
    }
    if (isLast) return;
    at = next;
  }
}

}  // namespace vgpu::stub
