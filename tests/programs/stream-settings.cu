// Settings of streams: flags, priorities, also as an attribute, and attributes, also of the default streams. All of them survive a pause,
// and none is left for the next program.
#include <thread>

#include "program.h"

namespace {

int priorityOf(cudaStream_t stream) {
  int priority = 1;
  cudaStreamAttrValue value{};
  CHECK(cudaStreamGetPriority(stream, &priority));
  CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributePriority, &value));
  return EXPECT(value.priority == priority) ? priority : 1;
}

void setPriority(cudaStream_t stream, int priority) {
  cudaStreamAttrValue value{};
  value.priority = priority;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributePriority, &value));
}

void setPolicy(cudaStream_t stream, cudaSynchronizationPolicy policy) {
  cudaStreamAttrValue value{};
  value.syncPolicy = policy;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
}

void setWindow(cudaStream_t stream, void* memory, size_t bytes) {
  cudaStreamAttrValue value{};
  value.accessPolicyWindow.base_ptr = memory;
  value.accessPolicyWindow.num_bytes = bytes;
  CHECK(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
}

bool hasWindow(cudaStream_t stream, size_t bytes) {
  cudaStreamAttrValue value{};
  CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
  return EXPECT(value.accessPolicyWindow.num_bytes == bytes);
}

bool hasPolicy(cudaStream_t stream, cudaSynchronizationPolicy policy) {
  cudaStreamAttrValue value{};
  CHECK(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
  return EXPECT(value.syncPolicy == policy);
}

// A stream's priority is the last one set, clamped to the device's range; copying attributes copies it too.
bool prioritiesAreSet(int least, int greatest) {
  cudaStream_t stream, other;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamCreateWithPriority(&other, cudaStreamNonBlocking, greatest));
  bool ok = true;
  for (cudaStream_t each : {stream, other, cudaStream_t{nullptr}, cudaStreamPerThread}) {
    setPriority(each, greatest + 1);
    ok &= EXPECT(priorityOf(each) == greatest + 1);
    setPriority(each, greatest - 90);
    ok &= EXPECT(priorityOf(each) == greatest);
    setPriority(each, least + 7);
    ok &= EXPECT(priorityOf(each) == least);
  }
  setPriority(stream, greatest + 1);
  CHECK(cudaStreamCopyAttributes(other, stream));
  ok &= EXPECT(priorityOf(other) == greatest + 1);
  CHECK(cudaStreamCopyAttributes(other, nullptr));
  ok &= EXPECT(priorityOf(other) == least);
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaStreamDestroy(other));
  return ok;
}

// A thread's default stream has default settings, whichever streams existed before.
bool defaultStreamsAreNew(int greatest) {
  for (int i = 0; i < 3000; ++i) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamDestroy(stream));
  }
  bool ok = false;
  std::thread([&] {
    unsigned flags = 7;
    CHECK(cudaStreamGetFlags(cudaStreamPerThread, &flags));
    ok = EXPECT(flags == 0) & EXPECT(priorityOf(cudaStreamPerThread) == 0);
  }).join();
  return ok;
}

}  // namespace

int main() {
  int least, greatest;
  CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  bool ok = EXPECT(greatest + 1 < least) & EXPECT(priorityOf(nullptr) == 0) & hasWindow(nullptr, 0);
  ok &= prioritiesAreSet(least, greatest) & defaultStreamsAreNew(greatest);
  cudaStream_t made, copied;
  CHECK(cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, greatest));
  CHECK(cudaStreamCreate(&copied));
  setPriority(made, greatest + 1);
  setPriority(nullptr, greatest);
  setPolicy(made, cudaSyncPolicySpin);
  setPolicy(nullptr, cudaSyncPolicyYield);
  setPolicy(cudaStreamPerThread, cudaSyncPolicyBlockingSync);
  CHECK(cudaStreamCopyAttributes(copied, made));
  cudaStream_t asDefault;
  void* memory;
  CHECK(cudaStreamCreate(&asDefault));
  CHECK(cudaMalloc(&memory, 1 << 20));
  setWindow(nullptr, memory, 4096);
  CHECK(cudaStreamCopyAttributes(asDefault, nullptr));
  setWindow(nullptr, memory, 8192);
  auto isAsSet = [&] {
    return EXPECT(priorityOf(made) == greatest + 1) & EXPECT(priorityOf(nullptr) == greatest) & EXPECT(priorityOf(copied) == greatest + 1) &
           EXPECT(priorityOf(cudaStreamPerThread) == least) & hasPolicy(made, cudaSyncPolicySpin) & hasPolicy(copied, cudaSyncPolicySpin) &
           hasPolicy(nullptr, cudaSyncPolicyYield) & hasPolicy(cudaStreamPerThread, cudaSyncPolicyBlockingSync) &
           hasWindow(nullptr, 8192) & hasWindow(asDefault, 4096) & hasPolicy(asDefault, cudaSyncPolicyYield);
  };
  ok &= isAsSet();
  pausePoint();
  ok &= isAsSet();
  return verdict("stream-settings", ok);
}
