#include "stub/worker/throttle.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

using namespace vgpu::stub;

namespace {

// A GPU that ends a launch only when it is told to. Events are known by where they were recorded: behind how many
// launches.
struct {
  uint64_t launched = 0, ended = 0;
  std::map<CUevent, uint64_t> recorded;
  char places[16];
} gpu;

Driver slowDriver() {
  gpu = {};
  Driver driver;
  driver.cuEventCreate = [](CUevent* event, unsigned) {
    *event = static_cast<CUevent>(static_cast<void*>(&gpu.places[gpu.recorded.size()]));
    gpu.recorded[*event] = 0;
    return CUDA_SUCCESS;
  };
  driver.cuEventRecord = [](CUevent event, CUstream) {
    gpu.recorded[event] = gpu.launched;
    return CUDA_SUCCESS;
  };
  driver.cuEventQuery = [](CUevent event) {
    return gpu.recorded[event] <= gpu.ended ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  };
  return driver;
}

}  // namespace

TEST_CASE("launches wait for a GPU that is behind, and it never runs dry for that") {
  Driver driver = slowDriver();
  Throttle throttle;
  uint64_t most = 0, least = ~uint64_t{0};
  while (gpu.launched < 2000) {
    if (!throttle.hasRoom(driver)) {
      most = std::max(most, gpu.launched - gpu.ended);
      while (!throttle.hasRoom(driver)) ++gpu.ended;
      least = std::min(least, gpu.launched - gpu.ended);
    }
    ++gpu.launched;
    throttle.launched(driver, nullptr);
  }
  CHECK(most == 191);
  CHECK(least == 127);
}

TEST_CASE("a GPU that keeps up holds no launch back") {
  Driver driver = slowDriver();
  Throttle throttle;
  for (; gpu.launched < 1000; gpu.ended = ++gpu.launched - 1) {
    REQUIRE(throttle.hasRoom(driver));
    throttle.launched(driver, nullptr);
  }
}

TEST_CASE("a context that has ended has room, so that the launch is told why") {
  Driver driver = slowDriver();
  Throttle throttle;
  while (throttle.hasRoom(driver)) {
    ++gpu.launched;
    throttle.launched(driver, nullptr);
  }
  driver.cuEventQuery = [](CUevent) { return CUDA_ERROR_ILLEGAL_ADDRESS; };
  CHECK(throttle.hasRoom(driver));
}
