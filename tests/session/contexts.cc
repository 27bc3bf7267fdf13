#include "intercept/session/contexts.h"

#include <doctest/doctest.h>

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("a primary context lives from its first retain to its last release, with one handle") {
  HandleTable handles;
  Contexts contexts(handles);
  contexts.add(0);
  uint64_t primary = contexts.primary(0);
  bool last = false;
  CHECK(!contexts.isLive(primary));
  CHECK(!contexts.release(0, last));
  contexts.retain(0);
  contexts.retain(0);
  CHECK(contexts.isLive(primary));
  CHECK((contexts.release(0, last) && !last));
  CHECK((contexts.release(0, last) && last));
  CHECK(contexts.end(primary));
  CHECK(!contexts.isLive(primary));
  contexts.retain(0);
  CHECK(contexts.isLive(primary));
  CHECK(contexts.primary(0) == primary);
}

TEST_CASE("a reset ends a primary context without taking its retains back") {
  HandleTable handles;
  Contexts contexts(handles);
  contexts.add(0);
  bool last = false;
  contexts.retain(0);
  CHECK(contexts.end(contexts.primary(0)));
  CHECK((contexts.release(0, last) && last));
  CHECK(!contexts.end(contexts.primary(0)));
}

TEST_CASE("each end of a context is counted once, and isLive() tells which contexts have ended") {
  HandleTable handles;
  Contexts contexts(handles);
  contexts.add(0);
  contexts.retain(0);
  uint64_t own = handles.create(api::Kind::CONTEXT, 0);
  CHECK(contexts.isLive(own));
  CHECK(contexts.end(own));
  CHECK(!contexts.end(own));
  CHECK(!contexts.isLive(own));
  CHECK(contexts.isLive(contexts.primary(0)));
  CHECK(contexts.endedCount() == 1);
}
