// Variables of modules, and their handles' end, on the program's side.
#include "intercept/session/variables.h"

#include <doctest/doctest.h>

#include <array>

#include "fake-session.h"
#include "intercept/session/modules/modules.h"

using namespace vgpu;
using namespace vgpu::client;

TEST_CASE("a module's end releases its variables' handles, so any number of modules can be loaded") {
  FakeSession& fake = FakeSession::one();
  HandleTable& handles = fake.session.handles;
  const std::array<std::byte, 16> image{};
  for (int i = 0; i < 3; ++i) {
    JitOptions jit;
    uint64_t module = 0;
    KnownVariable first, second, again;
    REQUIRE(loadModule(fake.thread(), image, fake.session.primaryContext(0), jit, module) == CUDA_SUCCESS);
    REQUIRE(findVariable(fake.thread(), module, "first", first) == CUDA_SUCCESS);
    REQUIRE(findVariable(fake.thread(), module, "second", second) == CUDA_SUCCESS);
    REQUIRE(findVariable(fake.thread(), module, "first", again) == CUDA_SUCCESS);
    CHECK(again.handle == first.handle);
    CHECK(handles.live(api::Kind::VARIABLE, 0).size() == 2);
    REQUIRE(unloadModule(fake.thread(), module) == CUDA_SUCCESS);
    CHECK(handles.live(api::Kind::VARIABLE, 0).empty());
  }
}

TEST_CASE("a module ends with its context, also if an error of earlier work has not been reported yet") {
  FakeSession& fake = FakeSession::one();
  Thread& thread = fake.thread();
  const std::array<std::byte, 16> image{};
  JitOptions jit;
  uint64_t module = 0;
  REQUIRE(loadModule(thread, image, fake.session.primaryContext(0), jit, module) == CUDA_SUCCESS);
  auto failWork = [&] { fake.session.segment.header().deferred[0].store(CUDA_ERROR_INVALID_VALUE); };
  failWork();
  CHECK(unloadModule(thread, module) == CUDA_ERROR_INVALID_VALUE);
  CHECK(fake.session.handles.isLive(api::Kind::MODULE, module));
  failWork();
  thread.takesDownContext = true;
  CHECK(unloadModule(thread, module) == CUDA_SUCCESS);
  thread.takesDownContext = false;
  CHECK_FALSE(fake.session.handles.isLive(api::Kind::MODULE, module));
}

TEST_CASE("if two threads look up a variable, the second gets the first one's handle") {
  Variables variables;
  CHECK(variables.add("x", {.handle = 1, .module = 7, .address = 4096, .bytes = 4}).handle == 1);
  CHECK(variables.add("x", {.handle = 2, .module = 7, .address = 4096, .bytes = 4}).handle == 1);
  CHECK(variables.find(7, "x")->handle == 1);
  CHECK(variables.dropModule(7) == std::vector<uint64_t>{1});
}

TEST_CASE("a managed variable of modules on two devices is found by its address as long as one of them is loaded") {
  for (uint64_t firstUnloaded : {7, 8}) {
    Variables variables;
    variables.add("shared", {.handle = 1, .module = 7, .address = 4096, .bytes = 4, .isManaged = true});
    variables.add("shared", {.handle = 2, .module = 8, .address = 4096, .bytes = 4, .isManaged = true});
    variables.dropModule(firstUnloaded);
    REQUIRE(variables.at(4098).has_value());
    CHECK(variables.at(4098)->module == 15 - firstUnloaded);
    variables.dropModule(15 - firstUnloaded);
    CHECK_FALSE(variables.at(4098).has_value());
  }
}
