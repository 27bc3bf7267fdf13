#include "stub/worker/kinds/event-times.h"

#include <doctest/doctest.h>

#include <vector>

#include "vgpu/api/wire-value.h"

using namespace vgpu::stub;

namespace {

// Events point to their times in milliseconds; a driver reports differences as floats.
std::vector<double> happened;
double clockNow = 0;

CUevent eventAt(double time) {
  happened.push_back(time);
  return static_cast<CUevent>(static_cast<void*>(&happened.back()));
}

double timeOf(CUevent event) { return *static_cast<double*>(static_cast<void*>(event)); }

Driver timedDriver() {
  happened.clear();
  happened.reserve(100);
  Driver driver;
  driver.cuEventCreate = [](CUevent* event, unsigned) { return *event = eventAt(0), CUDA_SUCCESS; };
  driver.cuEventDestroy_v2 = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuEventRecord = [](CUevent event, CUstream) {
    return *static_cast<double*>(static_cast<void*>(event)) = clockNow, CUDA_SUCCESS;
  };
  driver.cuEventSynchronize = [](CUevent) { return CUDA_SUCCESS; };
  driver.cuEventElapsedTime_v2 = [](float* milliseconds, CUevent from, CUevent to) {
    return *milliseconds = static_cast<float>(timeOf(to) - timeOf(from)), CUDA_SUCCESS;
  };
  return driver;
}

uint64_t handleOf(CUevent event) { return static_cast<uint64_t>(static_cast<double*>(static_cast<void*>(event)) - happened.data()); }

}  // namespace

TEST_CASE("a time between two events of an old session is as exact after a restore as before it") {
  Driver driver = timedDriver();
  EventTimes before(driver);
  clockNow = 0;
  before.start();
  // One day after the clock's zero a float has a resolution of 8 milliseconds.
  constexpr double day = 24 * 3600e3;
  std::vector<CUevent> events{eventAt(day + 7.25), eventAt(day), eventAt(day + 0.0625), eventAt(day + 1000)};
  std::unordered_map<uint64_t, uint64_t> real;
  for (CUevent event : events) {
    real[handleOf(event)] = vgpu::toWire(event);
    before.recorded(handleOf(event));
  }
  auto times = before.times(real);
  REQUIRE(times.size() == 4);

  EventTimes after(driver);
  after.start();
  after.setClock(day + 5000);
  for (auto [event, time] : times) after.load(event, time);
  for (CUevent start : events)
    for (CUevent end : events) {
      float milliseconds = -1;
      CHECK(after.elapsed(handleOf(start), nullptr, handleOf(end), nullptr, milliseconds) == CUDA_SUCCESS);
      CHECK(milliseconds == static_cast<float>(timeOf(end) - timeOf(start)));
    }
}

TEST_CASE("the clock of a restored session continues where it was, however long the worker has waited for that session") {
  Driver driver = timedDriver();
  EventTimes after(driver);
  clockNow = 100;
  after.start();
  clockNow = 900'000;
  after.setClock(5000);
  CHECK(after.now() == 5000);
  clockNow += 10;
  CUevent end = eventAt(clockNow);
  driver.cuEventQuery = [](CUevent) { return CUDA_SUCCESS; };
  after.load(1000, 4990);
  after.recorded(handleOf(end));
  float milliseconds = -1;
  CHECK(after.elapsed(1000, nullptr, handleOf(end), end, milliseconds) == CUDA_SUCCESS);
  CHECK(milliseconds == 20);
}

TEST_CASE("an event that has been recorded again, in a stream that is held, is not ready") {
  Driver driver = timedDriver();
  driver.cuEventQuery = [](CUevent event) { return timeOf(event) < 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS; };
  driver.cuEventSynchronize = [](CUevent) -> CUresult { throw "the thread of a GPU waits for the program"; };
  driver.cuEventElapsedTime_v2 = [](float*, CUevent from, CUevent to) {
    return timeOf(from) < 0 || timeOf(to) < 0 ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
  };
  EventTimes times(driver);
  float milliseconds = 0;
  CUevent start = eventAt(1), end = eventAt(-1);
  for (CUevent event : {start, end}) times.recorded(handleOf(event));
  CHECK(times.elapsed(handleOf(start), start, handleOf(end), end, milliseconds) == CUDA_ERROR_NOT_READY);
}
