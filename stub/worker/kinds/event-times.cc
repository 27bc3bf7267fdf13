#include "stub/worker/kinds/event-times.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

EventTimes::~EventTimes() {
  if (zero != nullptr) driver.cuEventDestroy_v2(zero);
}

void EventTimes::start() {
  require(driver, driver.cuEventCreate(&zero, CU_EVENT_DEFAULT), "creating the clock's event");
  require(driver, driver.cuEventRecord(zero, nullptr), "recording the clock's event");
}

void EventTimes::forgetAll() {
  live.clear();
  saved.clear();
}

CUresult EventTimes::timeOf(uint64_t event, CUevent real, double& milliseconds) {
  if (auto before = saved.find(event); before != saved.end()) {
    milliseconds = before->second;
    return CUDA_SUCCESS;
  }
  float sinceZero = 0;
  if (CUresult error = driver.cuEventElapsedTime_v2(&sinceZero, zero, real)) return error;
  milliseconds = offset + sinceZero;
  return CUDA_SUCCESS;
}

// The program has seen the completion words that the GPU writes just before both records, so the records finish at once. The limit is for
// another case: another thread may have recorded an event again, in a stream that waits for the program.
CUresult EventTimes::elapsed(uint64_t start, CUevent realStart, uint64_t end, CUevent realEnd,
                             float& milliseconds) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
  for (auto [event, real] : {std::pair(start, realStart), std::pair(end, realEnd)})
    while (!saved.contains(event) && driver.cuEventQuery(real) == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < limit) {}
  if (!saved.contains(start) && !saved.contains(end)) return driver.cuEventElapsedTime_v2(&milliseconds, realStart, realEnd);
  double from = 0, to = 0;
  if (CUresult error = timeOf(start, realStart, from)) return error;
  if (CUresult error = timeOf(end, realEnd, to)) return error;
  milliseconds = static_cast<float>(to - from);
  return CUDA_SUCCESS;
}

// The driver returns a difference as a float, which is too coarse for the distance of two events if counted from a zero long ago. So each
// event of this worker is measured from the one before it.
std::map<uint64_t, double> EventTimes::times(const std::unordered_map<uint64_t, uint64_t>& real) {
  struct Timed {
    double time;
    uint64_t event;
    CUevent real;
  };
  std::map<uint64_t, double> out;
  std::vector<Timed> inOrder;
  for (auto& [event, handle] : real) {
    double milliseconds;
    if (!live.contains(event) && !saved.contains(event)) continue;
    if (timeOf(event, fromWire<CUevent>(handle), milliseconds) != CUDA_SUCCESS) continue;
    if (saved.contains(event)) {
      out[event] = milliseconds;
    } else {
      inOrder.push_back({milliseconds, event, fromWire<CUevent>(handle)});
    }
  }
  std::sort(inOrder.begin(), inOrder.end(), [](auto& a, auto& b) { return a.time < b.time; });
  for (size_t i = 0; i < inOrder.size(); ++i) {
    float sinceLast = 0;
    bool known = i > 0 && driver.cuEventElapsedTime_v2(&sinceLast, inOrder[i - 1].real, inOrder[i].real) == CUDA_SUCCESS;
    if (known) inOrder[i].time = inOrder[i - 1].time + sinceLast;
    out[inOrder[i].event] = inOrder[i].time;
  }
  return out;
}

double EventTimes::now() {
  CUevent event = nullptr;
  float sinceZero = 0;
  require(driver, driver.cuEventCreate(&event, CU_EVENT_DEFAULT), "creating an event");
  CUresult result = driver.cuEventRecord(event, nullptr);
  if (result == CUDA_SUCCESS) result = driver.cuEventSynchronize(event);
  if (result == CUDA_SUCCESS) result = driver.cuEventElapsedTime_v2(&sinceZero, zero, event);
  driver.cuEventDestroy_v2(event);
  require(driver, result, "reading the clock");
  return offset + sinceZero;
}

}  // namespace vgpu::stub
