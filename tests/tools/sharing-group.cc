#include "tools/vgpud/sharing-group.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include "tools/vgpud/commit-barrier.h"

using namespace vgpu::daemon;

namespace {

std::string failureOf(kj::Promise<void> promise, kj::WaitScope& scope) {
  std::string reason;
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { promise.wait(scope); })) reason = exception->getDescription().cStr();
  return reason;
}

const auto broken = [] { return KJ_EXCEPTION(FAILED, "it is broken"); };

}  // namespace

TEST_CASE("sessions that share memory are resumed when all of them are there, and refused by name if one is missing") {
  auto io = kj::setupAsyncIo();
  SharingGroup whole(2);
  auto first = whole.join("a", {"b"});
  CHECK_FALSE(first.poll(io.waitScope));
  auto second = whole.join("b", {"a"});
  CHECK(failureOf(kj::mv(first), io.waitScope).empty());
  CHECK(failureOf(kj::mv(second), io.waitScope).empty());

  SharingGroup part(2);
  auto known = part.join("a", {"b", "c"});
  auto other = part.join("b", {});
  CHECK(failureOf(kj::mv(known), io.waitScope).find("session a shares memory or events with session c") != std::string::npos);
  CHECK(failureOf(SharingGroup(1).join("a", {"b"}), io.waitScope).find("session b") != std::string::npos);
  CHECK(failureOf(SharingGroup(1).join("a", {}), io.waitScope).empty());
}

TEST_CASE("a session that needs another one's export waits until it exists, and not for sessions that have no more to export") {
  auto io = kj::setupAsyncIo();
  SharingGroup group(3);
  auto first = group.more(), second = group.more();
  CHECK_FALSE(first.poll(io.waitScope));
  group.given();
  CHECK(first.wait(io.waitScope));
  CHECK(second.wait(io.waitScope));
  first = group.more();
  group.restored();
  CHECK_FALSE(first.poll(io.waitScope));
  second = group.more();  // for the last session: no other could export anything any more
  CHECK_FALSE(first.wait(io.waitScope));
  CHECK_FALSE(second.wait(io.waitScope));
  first = group.more();
  group.restored();
  CHECK_FALSE(first.wait(io.waitScope));
}

TEST_CASE("if one session fails, its error is returned to all that wait for it, now or later") {
  auto io = kj::setupAsyncIo();
  SharingGroup group(2);
  auto waiting = group.more().ignoreResult();
  auto joining = group.join("a", {});
  group.fail(broken());
  CHECK(failureOf(kj::mv(waiting), io.waitScope) == "it is broken");
  CHECK(failureOf(kj::mv(joining), io.waitScope) == "it is broken");
  CHECK(failureOf(group.more().ignoreResult(), io.waitScope) == "it is broken");
}

TEST_CASE("the last one to reach a barrier decides for all") {
  auto io = kj::setupAsyncIo();
  unsigned calls = 0;
  CommitBarrier open(2, [&] { ++calls; });
  auto first = open.arrive();
  CHECK(calls == 0);
  auto second = open.arrive();
  CHECK(calls == 1);
  CHECK(failureOf(kj::mv(first), io.waitScope).empty());
  CHECK(failureOf(kj::mv(second), io.waitScope).empty());

  CommitBarrier refusing(2, [] { kj::throwFatalException(broken()); });
  first = refusing.arrive();
  second = refusing.arrive();
  CHECK(failureOf(kj::mv(first), io.waitScope) == "it is broken");
  CHECK(failureOf(kj::mv(second), io.waitScope) == "it is broken");
}
