#include "tools/common/cross-thread.h"

#include <doctest/doctest.h>

#include <thread>

namespace vgpu {
namespace {

// Records the thread on which it is destroyed.
struct Tells {
  explicit Tells(std::thread::id& where) : where(where) {}
  ~Tells() { where = std::this_thread::get_id(); }
  std::thread::id& where;
};

TEST_CASE("an object of an event loop is destroyed on the loop's thread, whichever thread releases it") {
  kj::EventLoop loop;
  kj::WaitScope waiting(loop);
  auto executor = kj::getCurrentThreadExecutor().addRef();
  std::thread::id where;
  SUBCASE("the loop's own") { destroyOn(*executor, kj::heap<Tells>(where)); }
  SUBCASE("another") {
    auto done = kj::newPromiseAndCrossThreadFulfiller<void>();
    std::thread other([&] {
      destroyOn(*executor, kj::heap<Tells>(where));
      done.fulfiller->fulfill();
    });
    done.promise.wait(waiting);
    other.join();
  }
  CHECK(where == std::this_thread::get_id());
}

}  // namespace
}  // namespace vgpu
