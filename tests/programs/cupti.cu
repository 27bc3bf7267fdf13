// A program linked with CUPTI: its calls fail with CUPTI's own errors, because it needs NVIDIA's driver, and CUDA still works.
#include <cupti.h>

#include "program.h"

namespace {

__global__ void addOne(int* data) { data[threadIdx.x] += 1; }

// Whether CUPTI refused the call; the program must be able to continue without a profiler.
bool isRefused(CUptiResult result, const char* what) {
  if (result != CUPTI_SUCCESS) return true;
  std::fprintf(stderr, "%s: CUPTI says that it works\n", what);
  return false;
}

bool profilerIsAbsent() {
  CUpti_SubscriberHandle subscriber = nullptr;
  uint32_t version = 0;
  const auto callback = [](void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {};
  bool ok = EXPECT(cuptiGetVersion(&version) == CUPTI_SUCCESS) & EXPECT(version == CUPTI_API_VERSION);
  ok &= isRefused(cuptiSubscribe(&subscriber, callback, nullptr), "cuptiSubscribe");
  ok &= isRefused(cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), "cuptiActivityEnable");
  return ok & isRefused(cuptiActivityFlushAll(0), "cuptiActivityFlushAll");
}

bool computes(int* data) {
  addOne<<<1, 4>>>(data);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return true;
}

}  // namespace

int main() {
  bool ok = profilerIsAbsent();  // before the first CUDA call, as at a framework's start
  DeviceArray<int> data(std::vector<int>{1, 2, 3, 4});
  ok &= computes(data) & profilerIsAbsent();
  pausePoint();
  ok &= computes(data) & profilerIsAbsent();
  return verdict("cupti", ok & same("added", data.download(), {3, 4, 5, 6}));
}
