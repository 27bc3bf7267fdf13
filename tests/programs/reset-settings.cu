// Limits, the preferred cache and attributes of the default stream belong to a context: they end with it, at a reset or the last release,
// whatever objects the device has had since. Settings made afterwards are kept over a pause; earlier ones do not come back with them, nor
// are any left for the next program.
#include "driver-entry.h"

namespace {

struct Settings {
  std::vector<size_t> limits;
  cudaFuncCache cache{};
  size_t windowBytes = 0;
  int priority = 0;
  bool operator==(const Settings& other) const {
    return limits == other.limits && cache == other.cache && windowBytes == other.windowBytes && priority == other.priority;
  }
};

constexpr cudaLimit limits[] = {cudaLimitStackSize, cudaLimitPrintfFifoSize, cudaLimitMallocHeapSize,
                                cudaLimitMaxL2FetchGranularity, cudaLimitPersistingL2CacheSize};
constexpr size_t values[] = {4096, 2 << 20, 32 << 20, 32, 1 << 20};

Settings now() {
  Settings read;
  for (cudaLimit limit : limits) CHECK(cudaDeviceGetLimit(&read.limits.emplace_back(), limit));
  CHECK(cudaDeviceGetCacheConfig(&read.cache));
  cudaStreamAttrValue value{};
  CHECK(cudaStreamGetAttribute(nullptr, cudaStreamAttributeAccessPolicyWindow, &value));
  read.windowBytes = value.accessPolicyWindow.num_bytes;
  CHECK(cudaStreamGetPriority(nullptr, &read.priority));
  CHECK(cudaStreamGetAttribute(nullptr, cudaStreamAttributePriority, &value));
  if (!EXPECT(value.priority == read.priority)) read.priority = 1;
  return read;
}

void setAll() {
  for (size_t i = 0; i < std::size(limits); ++i) CHECK(cudaDeviceSetLimit(limits[i], values[i]));
  CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.num_bytes = 4096;
  CHECK(cudaMalloc(&value.accessPolicyWindow.base_ptr, value.accessPolicyWindow.num_bytes));  // ends with the context
  CHECK(cudaStreamSetAttribute(nullptr, cudaStreamAttributeAccessPolicyWindow, &value));
  value = {};
  value.priority = -1;
  CHECK(cudaStreamSetAttribute(nullptr, cudaStreamAttributePriority, &value));
}

size_t stack() { return now().limits[0]; }

bool endWithAReset(const Settings& first) {
  setAll();
  bool ok = EXPECT(stack() == values[0]) & EXPECT(now().cache == cudaFuncCachePreferL1) & EXPECT(now().priority == -1);
  CHECK(cudaDeviceReset());
  ok &= EXPECT(now() == first);
  setAll();  // as at the first time
  CHECK(cudaDeviceReset());
  return ok & EXPECT(now() == first);
}

bool endWithTheLastRelease(const Settings& first) {
  CUcontext primary = nullptr;
  int active = 1;
  unsigned flags = 0;
  setAll();
  for (; active != 0; CALL(cuDevicePrimaryCtxGetState, 0, &flags, &active)) CALL(cuDevicePrimaryCtxRelease, 0);
  CALL(cuDevicePrimaryCtxRetain, &primary, 0);
  CALL(cuCtxSetCurrent, primary);
  const bool ok = EXPECT(now() == first);
  CHECK(cudaDeviceReset());
  return ok;
}

// A context made by the program loses its settings with its end, and does not affect the primary context's.
bool endWithTheirContext(const Settings& first) {
  CUcontext own = nullptr;
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
  CALL(cuCtxCreate, &own, nullptr, 0, 0);
  setAll();
  bool ok = EXPECT(stack() == values[0]);
  CALL(cuCtxDestroy, own);
  Settings wanted = first;
  wanted.limits[0] = 2048;
  ok &= EXPECT(now() == wanted);
  CHECK(cudaDeviceReset());
  return ok & EXPECT(now() == first);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  const Settings first = now();
  bool ok = true;
  for (size_t i = 0; i < std::size(limits); ++i) ok &= EXPECT(first.limits[i] != values[i]);  // what an earlier program may have set
  ok &= endWithAReset(first) & endWithTheLastRelease(first) & endWithTheirContext(first);
  CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 8192));
  Settings wanted = first;
  wanted.limits[0] = 8192;
  ok &= EXPECT(now() == wanted);
  pausePoint();
  ok &= EXPECT(now() == wanted);
  CHECK(cudaDeviceReset());
  ok &= EXPECT(now() == first) & endWithAReset(first) & endWithTheirContext(first);
  CHECK(cudaDeviceSetLimit(limits[3], values[3]));  // not reset before the end
  return verdict("reset-settings", ok);
}
