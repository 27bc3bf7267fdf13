#include "intercept/session/spare-events.h"

#include <algorithm>

#include "intercept/session/thread.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

uint64_t SpareEvents::take(Thread& thread, unsigned flags) {
  if (flags >= kinds || thread.session.lost.load(std::memory_order_relaxed)) return 0;
  const uint64_t context = thread.owner();
  uint64_t event = 0;
  {
    std::lock_guard lock(mutex);
    auto& kept = spares[flags];
    auto last = std::find_if(kept.rbegin(), kept.rend(), [&](const Spare& spare) { return spare.context == context; });
    if (last == kept.rend()) return 0;
    event = last->event;
    kept.erase(std::next(last).base());
  }
  thread.session.handles.revive(event, context);
  return event;
}

bool SpareEvents::keep(Thread& thread, uint64_t event) {
  Session& session = thread.session;
  EventState* state = session.handles.find<api::Kind::EVENT>(event);
  const unsigned flags = state == nullptr ? kinds : state->flags.load(std::memory_order_relaxed);
  if (flags >= kinds || thread.takesDownContext || session.captures.concernsEvents()) return false;
  if (session.lost.load(std::memory_order_relaxed) || session.fault(state->device()) != CUDA_SUCCESS) return false;
  if (!isPast(session, {state->device(), state->record.get()})) return false;
  const uint64_t context = state->context.load(std::memory_order_relaxed);
  std::lock_guard lock(mutex);
  if (spares[flags].size() >= most || !session.handles.retire(event)) return false;
  spares[flags].push_back({event, context});
  return true;
}

void SpareEvents::revive(Thread& thread, unsigned device, uint64_t context) {
  std::lock_guard lock(mutex);
  for (auto& kept : spares)
    std::erase_if(kept, [&](const Spare& spare) {
      if (handleDevice(spare.event) != device || (context != 0 && spare.context != context)) return false;
      thread.session.handles.revive(spare.event, spare.context);
      return true;
    });
}

}  // namespace vgpu::client
