#include "tools/common/file-work.h"

#include <doctest/doctest.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <future>
#include <thread>

namespace vgpu {

TEST_CASE("file work that hangs blocks neither the event loop nor other work") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::promise<void> server;
  auto answered = server.get_future().share();
  FileWork files(2);
  auto hanging = files.run([answered] {
    answered.wait();
    return 1;
  });
  auto other = files.run([] { return std::this_thread::get_id(); });
  CHECK(other.wait(io.waitScope) != std::this_thread::get_id());
  server.set_value();
  CHECK(hanging.wait(io.waitScope) == 1);
}

TEST_CASE("file work beyond the maximum number of threads waits until one is free") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::promise<void> server;
  auto answered = server.get_future().share();
  FileWork files(1);
  auto first = files.run([answered] {
    answered.wait();
    return std::this_thread::get_id();
  });
  auto second = files.run([] { return std::this_thread::get_id(); });
  server.set_value();
  CHECK(first.wait(io.waitScope) == second.wait(io.waitScope));
}

TEST_CASE("file work that throws rejects its promise, and the next one is executed") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FileWork files(1);
  auto failing = files.run([]() -> int { KJ_FAIL_REQUIRE("the disk is full"); });
  auto next = files.run([] { return 7; });
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { failing.wait(io.waitScope); })) {
    CHECK(std::string(exception->getDescription().cStr()).find("the disk is full") != std::string::npos);
  } else {
    FAIL("nothing was thrown");
  }
  CHECK(next.wait(io.waitScope) == 7);
}

TEST_CASE("file work that hangs does not prevent its owner's destruction") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  std::promise<void> server;
  std::promise<void> begun;
  auto answered = server.get_future().share();
  {
    FileWork files(1);
    auto dropped = files.run([answered, &begun] {
      begun.set_value();
      answered.wait();
      return 1;
    });
    begun.get_future().wait();
  }
  server.set_value();
}

}  // namespace vgpu
