#include "intercept/session/spare-events.h"

#include <doctest/doctest.h>

#include <set>

#include "fake-session.h"

using namespace vgpu;
using namespace vgpu::client;

namespace {

class Spares {
 public:
  uint64_t make(unsigned flags = 0) {
    const uint64_t event = thread.create(api::Kind::EVENT);
    state(event).flags = flags;
    return event;
  }
  EventState& state(uint64_t event) { return *thread.session.handles.find<api::Kind::EVENT>(event); }
  bool isLive(uint64_t event) { return thread.session.handles.isLive(api::Kind::EVENT, event); }
  bool keep(uint64_t event) { return spares.keep(thread, event); }
  uint64_t take(unsigned flags = 0) { return spares.take(thread, flags); }

  Thread& thread = FakeSession::one().thread();
  SpareEvents spares;
};

}  // namespace

TEST_CASE("a destroyed event is reused for the next one, in the state of a new event") {
  Spares spares;
  const uint64_t event = spares.make();
  CHECK(spares.take() == 0);
  spares.state(event).record.set(&spares.thread, {1, 3});
  spares.thread.session.segment.completionWord(3).done.store(1);
  CHECK(spares.keep(event));
  CHECK_FALSE(spares.isLive(event));
  CHECK_FALSE(spares.keep(event));
  CHECK(spares.take() == event);
  CHECK(spares.isLive(event));
  CHECK(spares.state(event).record.get().sequence == 0);
  CHECK(spares.take() == 0);
}

TEST_CASE("an event that can be distinguished from a new one is not kept") {
  Spares spares;
  const uint64_t pending = spares.make(), shared = spares.make(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), plain = spares.make();
  spares.state(pending).record.set(&spares.thread, {frameUnit + 1, 5});
  CHECK_FALSE(spares.keep(pending));
  CHECK_FALSE(spares.keep(shared));
  spares.thread.takesDownContext = true;
  CHECK_FALSE(spares.keep(plain));
  spares.thread.takesDownContext = false;
  for (uint64_t each : {pending, shared, plain}) CHECK(spares.isLive(each));
  CHECK(spares.keep(plain));
}

TEST_CASE("a destroyed event is reused only for the same flags in the same context") {
  Spares spares;
  const uint64_t event = spares.make(CU_EVENT_DISABLE_TIMING);
  CHECK(spares.keep(event));
  CHECK(spares.take(CU_EVENT_DEFAULT) == 0);
  CHECK(spares.take(CU_EVENT_BLOCKING_SYNC) == 0);
  CHECK(spares.take(CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING) == 0);
  const uint64_t other = spares.thread.session.handles.create(api::Kind::CONTEXT, 0);
  spares.thread.makeCurrent(other);
  CHECK(spares.take(CU_EVENT_DISABLE_TIMING) == 0);
  spares.thread.leaveCurrent();
  CHECK(spares.take(CU_EVENT_DISABLE_TIMING) == event);
}

TEST_CASE("kept events are destroyed with their context, and few are kept") {
  Spares spares;
  std::set<uint64_t> kept;
  for (int i = 0; i < 200; ++i) {
    const uint64_t event = spares.make();
    if (spares.keep(event)) kept.insert(event);
  }
  CHECK(kept.size() == 64);
  const uint64_t context = spares.thread.owner();
  spares.spares.revive(spares.thread, 0, context + 1);
  spares.spares.revive(spares.thread, 1, 0);
  for (uint64_t event : kept) CHECK_FALSE(spares.isLive(event));
  spares.spares.revive(spares.thread, 0, context);
  for (uint64_t event : kept) CHECK(spares.isLive(event));
  CHECK(spares.take() == 0);
}
