#include "tools/worker/work-thread.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>

#include <atomic>
#include <memory>
#include <vector>

#include "tools/worker/progress-relay.h"

namespace vgpu::stub {
namespace {

class Receiver final : public control::Progress::Server {
 public:
  explicit Receiver(std::vector<uint64_t>& seen) : seen(seen) {}
  kj::Promise<void> report(ReportContext context) override {
    seen.push_back(context.getParams().getDoneBytes());
    return kj::READY_NOW;
  }

 private:
  std::vector<uint64_t>& seen;
};

}  // namespace

TEST_CASE("work is executed in order, on one thread") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  WorkThread thread;
  std::vector<int> order;
  std::thread::id where[2];
  auto first = thread.run([&] {
    order.push_back(1);
    where[0] = std::this_thread::get_id();
    return 1;
  });
  auto second = thread.run([&] {
    order.push_back(2);
    where[1] = std::this_thread::get_id();
    return 2;
  });
  CHECK(second.wait(io.waitScope) == 2);
  CHECK(first.wait(io.waitScope) == 1);
  CHECK(order == std::vector<int>{1, 2});
  CHECK(where[0] == where[1]);
  CHECK(where[0] != std::this_thread::get_id());
}

TEST_CASE("work that fails rejects its promise, and the next one is executed") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  WorkThread thread;
  auto failing =
      thread.run([]() -> int { throw kj::Exception(kj::Exception::Type::FAILED, "", 0, kj::str("bad chunk")); });
  auto next = thread.run([] { return 7; });
  auto caught = kj::runCatchingExceptions([&] { failing.wait(io.waitScope); });
  KJ_IF_MAYBE (exception, caught) {
    CHECK(exception->getDescription() == "bad chunk");
  } else {
    FAIL("nothing was thrown");
  }
  CHECK(next.wait(io.waitScope) == 7);
}

TEST_CASE("progress reaches the event loop while work runs") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  WorkThread thread;
  std::vector<uint64_t> seen;
  auto relay = std::make_shared<ProgressRelay>(kj::heap<Receiver>(seen));
  auto work = thread.run([relay] {
    for (uint64_t step = 1; step <= 3; ++step) relay->report("step", step, 3);
    return 1;
  });
  cancelOnDrop(kj::mv(work), relay).wait(io.waitScope);
  CHECK(!seen.empty());
  CHECK(seen.front() == 1);
}

TEST_CASE("work whose promise is dropped ends at its next report") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  auto ended = kj::newPromiseAndCrossThreadFulfiller<bool>();
  WorkThread thread;
  std::vector<uint64_t> seen;
  auto relay = std::make_shared<ProgressRelay>(kj::heap<Receiver>(seen));
  auto began = kj::newPromiseAndCrossThreadFulfiller<bool>();
  auto work = thread.run([&, relay] {
    began.fulfiller->fulfill(true);
    auto caught = kj::runCatchingExceptions([&] {
      while (true) relay->report("on", 1, 2);
    });
    ended.fulfiller->fulfill(caught != nullptr);
    return 1;
  });
  {
    auto dropped = cancelOnDrop(kj::mv(work), relay);
    began.promise.wait(io.waitScope);
  }
  CHECK(ended.promise.wait(io.waitScope));
}

}  // namespace vgpu::stub
