// Green contexts: partitions of the device's multiprocessors with their own streams, which share memory, kernels and variables with the
// primary context. Resource structures in the program's own memory remain valid after the pause point.
#include "exported-entry.h"
#include "in-session.h"

#include <cooperative_groups.h>

__device__ unsigned counter;
__global__ void count(unsigned by) { atomicAdd(&counter, by); }
__global__ void copyWord(unsigned* to, const unsigned* from) { *to = *from; }
__global__ void __launch_bounds__(1024) meet(unsigned* met) {
  if (threadIdx.x == 0) atomicAdd(met, 1);
  cooperative_groups::this_grid().sync();
}

namespace {

constexpr CUdevResourceType multiprocessors = CU_DEV_RESOURCE_TYPE_SM;

CUcontext primary = nullptr;
CUdevResource whole{};

// A green context of one or several resources.
struct Green {
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUstream stream = nullptr;  // non-blocking

  bool make(CUdevResource* resources, unsigned count = 1) {
    CUdevResourceDesc descriptor = nullptr;
    return WORKS(cuDevResourceGenerateDesc, &descriptor, resources, count) && make(descriptor);
  }
  bool make(CUdevResourceDesc descriptor) {
    return WORKS(cuGreenCtxCreate, &green, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM) &&
           WORKS(cuCtxFromGreenCtx, &context, green) &&
           WORKS(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
  }
  unsigned has() const {
    CUdevResource resource{};
    return WORKS(cuGreenCtxGetDevResource, green, &resource, multiprocessors) ? resource.sm.smCount : 0;
  }
  bool end() { return WORKS(cuStreamDestroy_v2, stream) && WORKS(cuGreenCtxDestroy, green) && WORKS(cuCtxSetCurrent, primary); }
};

// Words of device memory; streams wait for the first one, which a stream of the primary context writes.
struct Words {
  Words() : words(std::vector<unsigned>(4)) { CHECK(cudaStreamCreateWithFlags(&opener, cudaStreamNonBlocking)); }
  ~Words() { CHECK(cudaStreamDestroy(opener)); }
  CUdeviceptr gate() { return reinterpret_cast<CUdeviceptr>(static_cast<unsigned*>(words)); }
  bool hold(CUstream stream) { return WORKS(cuStreamWaitValue32_v2, stream, gate(), ++opened, CU_STREAM_WAIT_VALUE_GEQ); }
  bool open() { return WORKS(cuStreamWriteValue32_v2, opener, gate(), opened, 0); }
  unsigned* at(int i) { return static_cast<unsigned*>(words) + i; }
  unsigned value(int i) {
    unsigned value = 0;
    CHECK(cudaMemcpy(&value, at(i), sizeof value, cudaMemcpyDeviceToHost));
    return value;
  }

  DeviceArray<unsigned> words;
  unsigned opened = 0;
  cudaStream_t opener = nullptr;
};

unsigned counted() {
  unsigned value = 0;
  CHECK(cudaMemcpyFromSymbol(&value, counter, sizeof value));
  return value;
}

// Kernels and variables are the primary context's, in the green context's streams and while it is current.
bool counts(const Green& part) {
  const unsigned before = counted();
  count<<<1, 1, 0, part.stream>>>(1);
  CHECK(cudaGetLastError());
  bool ok = WORKS(cuStreamSynchronize, part.stream) & WORKS(cuCtxSetCurrent, part.context);
  count<<<1, 1>>>(2);
  CHECK(cudaDeviceSynchronize());
  ok &= EXPECT(counted() == before + 3) & WORKS(cuCtxSetCurrent, primary);
  return ok & EXPECT(counted() == before + 3);
}

bool knows(const Green& part) {
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  unsigned long long id = 0, ofCurrent = 1;
  CUdevResource resource{};
  bool ok = WORKS(cuStreamGetGreenCtx, part.stream, &green) & EXPECT(green == part.green);
  ok &= WORKS(cuStreamGetCtx_v2, part.stream, &context, &green) & EXPECT(context == primary) & EXPECT(green == part.green);
  ok &= WORKS(cuStreamGetCtx, part.stream, &context) & EXPECT(context == part.context);
  ok &= WORKS(cuGreenCtxGetId, part.green, &id) & WORKS(cuCtxSetCurrent, part.context);
  ok &= WORKS(cuGreenCtxGetId, nullptr, &ofCurrent) & EXPECT(id == ofCurrent);
  ok &= WORKS(cuStreamGetGreenCtx, nullptr, &green) & EXPECT(green == part.green);
  ok &= GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamGetCtx_v2, CU_STREAM_PER_THREAD, &context, &green);
  ok &= WORKS(cuCtxSetCurrent, primary) & WORKS(cuStreamGetGreenCtx, nullptr, &green) & EXPECT(green == nullptr);
  ok &= WORKS(cuStreamGetCtx_v2, CU_STREAM_PER_THREAD, &context, &green) & EXPECT(context == primary) & EXPECT(green == nullptr);
  ok &= WORKS(cuCtxGetDevResource, part.context, &resource, multiprocessors) & EXPECT(resource.sm.smCount == part.has());
  return ok & WORKS(cuCtxGetDevResource, primary, &resource, multiprocessors) & EXPECT(resource.sm.smCount == whole.sm.smCount);
}

// A green context's default stream and its blocking streams are not ordered with other streams, nor with each other.
bool runsBeside(const Green& part) {
  Words words;
  cudaStream_t blocking = nullptr;
  bool ok = WORKS(cuCtxSetCurrent, part.context);
  CHECK(cudaStreamCreate(&blocking));
  for (cudaStream_t held : {cudaStream_t{}, blocking}) {
    const cudaStream_t other = held == nullptr ? blocking : nullptr;
    CHECK(cudaMemsetAsync(words.at(1), 0, 3 * sizeof(unsigned), part.stream));
    ok &= WORKS(cuStreamSynchronize, part.stream) & words.hold(held);
    CHECK(cudaMemsetAsync(words.at(1), 7, 1, held));
    copyWord<<<1, 1, 0, other>>>(words.at(2), words.at(1));
    copyWord<<<1, 1, 0, part.stream>>>(words.at(3), words.at(1));
    CHECK(cudaGetLastError());
    ok &= WORKS(cuStreamSynchronize, other) & WORKS(cuStreamSynchronize, part.stream);
    ok &= EXPECT(cudaStreamQuery(held) == cudaErrorNotReady) & words.open() & WORKS(cuStreamSynchronize, held);
    ok &= EXPECT(words.value(1) == 7) & EXPECT(words.value(2) == 0) & EXPECT(words.value(3) == 0);
  }
  CHECK(cudaStreamDestroy(blocking));
  return ok & WORKS(cuCtxSetCurrent, primary);
}

// While it is current, its default stream can be captured, unlike the legacy stream; other streams continue meanwhile.
bool captures(const Green& part) {
  Words words;
  CUgraph graph = nullptr;
  CUgraphExec executable = nullptr;
  size_t nodes = 0;
  bool ok = WORKS(cuCtxSetCurrent, part.context) & WORKS(cuStreamBeginCapture_v2, nullptr, CU_STREAM_CAPTURE_MODE_RELAXED);
  ok &= WORKS(cuMemsetD32Async, reinterpret_cast<CUdeviceptr>(words.at(1)), 5, 1, nullptr);
  ok &= WORKS(cuMemsetD32Async, reinterpret_cast<CUdeviceptr>(words.at(2)), 6, 1, part.stream);
  ok &= WORKS(cuStreamEndCapture, nullptr, &graph) && WORKS(cuGraphGetNodes, graph, nullptr, &nodes) && EXPECT(nodes == 1);
  ok &= WORKS(cuStreamSynchronize, part.stream) & EXPECT(words.value(1) == 0) & EXPECT(words.value(2) == 6);
  ok &= WORKS(cuGraphInstantiateWithFlags, &executable, graph, 0) && WORKS(cuGraphLaunch, executable, nullptr);
  ok &= WORKS(cuStreamSynchronize, nullptr) & EXPECT(words.value(1) == 5);
  ok &= WORKS(cuGraphExecDestroy, executable) & WORKS(cuGraphDestroy, graph);
  return ok & WORKS(cuCtxSetCurrent, primary);
}

// Events behind all work of a green context, and before its later work.
bool waits(const Green& part) {
  Words words;
  CUevent event = nullptr, ofAll = nullptr;
  bool ok = WORKS(cuEventCreate, &event, CU_EVENT_DISABLE_TIMING) & WORKS(cuEventCreate, &ofAll, CU_EVENT_DISABLE_TIMING);
  ok &= words.hold(part.stream) & WORKS(cuGreenCtxRecordEvent, part.green, event) & WORKS(cuCtxRecordEvent, primary, ofAll);
  ok &= GIVES(CUDA_ERROR_NOT_READY, cuEventQuery, event) & GIVES(CUDA_ERROR_NOT_READY, cuEventQuery, ofAll);
  ok &= words.open() & WORKS(cuEventSynchronize, event) & WORKS(cuEventSynchronize, ofAll);
  ok &= words.hold(cudaStreamLegacy) & WORKS(cuEventRecord, event, cudaStreamLegacy);
  ok &= WORKS(cuGreenCtxWaitEvent, part.green, event);
  count<<<1, 1, 0, part.stream>>>(0);
  ok &= GIVES(CUDA_ERROR_NOT_READY, cuStreamQuery, part.stream) & words.open() & WORKS(cuStreamSynchronize, part.stream);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxRecordEvent, nullptr, event);
  return ok & WORKS(cuEventDestroy_v2, event) & WORKS(cuEventDestroy_v2, ofAll);
}

// A cooperative launch must fit into the stream's partition.
bool fits(const Green& part) {
  DeviceArray<unsigned> met(std::vector<unsigned>(1));
  int blocks = 0;
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, meet, 1024, 0));
  unsigned* argument = met;
  void* arguments[]{&argument};
  const unsigned most = static_cast<unsigned>(blocks) * part.has();
  bool ok = EXPECT(cudaLaunchCooperativeKernel(meet, most + 1, 1024, arguments, 0, part.stream) == cudaErrorCooperativeLaunchTooLarge);
  static_cast<void>(cudaGetLastError());
  CHECK(cudaLaunchCooperativeKernel(meet, most, 1024, arguments, 0, part.stream));
  CHECK(cudaStreamSynchronize(part.stream));
  return ok & EXPECT(met.download()[0] == most);
}

bool refusesResources(CUdevResource* parts) {
  CUdevResource resource{}, foreign{};
  CUdevResourceDesc descriptor = nullptr;
  CUgreenCtx green = nullptr;
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  unsigned groups = 1;
  foreign.type = multiprocessors;
  bool ok = GIVES(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDeviceGetDevResource, 0, &resource, CU_DEV_RESOURCE_TYPE_INVALID);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetDevResource, 0, nullptr, multiprocessors);
  ok &= GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetDevResource, 99, &resource, multiprocessors);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxGetDevResource, nullptr, &resource, multiprocessors);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount, &resource, nullptr, &whole, nullptr, 0, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDevSmResourceSplitByCount, &resource, &groups, nullptr, nullptr, 0, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount, &resource, &groups, &whole, nullptr, 0,
              whole.sm.smCount + 1);
  ok &= GIVES(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevSmResourceSplitByCount, &resource, &groups, &resource, nullptr, 0, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevSmResourceSplitByCount, &resource, &groups, &parts[0], nullptr, 0, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION, cuDevResourceGenerateDesc, &descriptor, &foreign, 1);
  ok &= GIVES(CUDA_ERROR_INVALID_RESOURCE_TYPE, cuDevResourceGenerateDesc, &descriptor, &resource, 1);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc, nullptr, parts, 1);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDevResourceGenerateDesc, &descriptor, nullptr, 1);
  ok &= WORKS(cuDevResourceGenerateDesc, &descriptor, parts, 1);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate, &green, descriptor, 0, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuGreenCtxCreate, nullptr, descriptor, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  ok &= GIVES(CUDA_ERROR_INVALID_DEVICE, cuGreenCtxCreate, &green, descriptor, 99, CU_GREEN_CTX_DEFAULT_STREAM);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxStreamCreate, &stream, nullptr, CU_STREAM_NON_BLOCKING, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxFromGreenCtx, &context, nullptr);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxDestroy, nullptr);
  return ok & GIVES(CUDA_ERROR_INVALID_CONTEXT, cuGreenCtxRecordEvent, nullptr, nullptr);
}

// Surprising resources that the driver accepts. How many multiprocessors such a green context has natively is unknown.
bool takesOddResources(CUdevResource* parts) {
  CUdevResource resource{}, mixed[]{parts[0], whole}, twice[]{parts[0], parts[0]};
  bool ok = true;
  for (unsigned flags : {4u, 8u, 16u, 0x80000000u}) {
    unsigned groups = 1;
    ok &= WORKS(cuDevSmResourceSplitByCount, &resource, &groups, &whole, nullptr, flags, 0);
    ok &= EXPECT(groups == 1) & EXPECT(resource.sm.smCount == whole.sm.minSmPartitionSize);
  }
  for (CUdevResource* resources : {mixed, twice}) {
    CUdevResourceDesc descriptor = nullptr;
    ok &= WORKS(cuDevResourceGenerateDesc, &descriptor, resources, 2);
  }
  CUgreenCtx green = nullptr;
  ok &= WORKS(cuGreenCtxCreate, &green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  return ok & WORKS(cuGreenCtxDestroy, green);
}

// Only in a session: if a green context is destroyed while it is current, driver 580 double-frees at the end of every other program.
bool refusesEnded(CUdevResource* parts) {
  if (!inSession) return true;
  Green part;
  CUstream stream = nullptr;
  CUcontext context = nullptr;
  CUdevResource resource{};
  CUgraph graph = nullptr;
  unsigned long long id = 0;
  bool ok = part.make(parts) && WORKS(cuGreenCtxGetDevResource, part.green, &resource, multiprocessors);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuGreenCtxStreamCreate, &stream, part.green, CU_STREAM_DEFAULT, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_CONTEXT, cuCtxDestroy_v2, part.context) & WORKS(cuCtxSetCurrent, part.context);
  ok &= WORKS(cuStreamBeginCapture_v2, part.stream, CU_STREAM_CAPTURE_MODE_RELAXED) & WORKS(cuStreamEndCapture, part.stream, &graph);
  ok &= WORKS(cuGraphDestroy, graph) & GIVES(CUDA_ERROR_INVALID_HANDLE, cuGreenCtxRecordEvent, part.green, nullptr);
  ok &= WORKS(cuGreenCtxDestroy, part.green);
  ok &= GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxSynchronize) & WORKS(cuCtxSetCurrent, primary);
  ok &= GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxDestroy, part.green);
  ok &= GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuGreenCtxGetId, part.green, &id);
  ok &= GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamSynchronize, part.stream);
  ok &= GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuStreamDestroy_v2, part.stream);
  ok &= GIVES(CUDA_ERROR_CONTEXT_IS_DESTROYED, cuCtxFromGreenCtx, &context, part.green);
  // It becomes current all the same.
  ok &= WORKS(cuCtxSetCurrent, part.context);
  return ok & WORKS(cuCtxSetCurrent, primary);
}

bool works(Green& part) { return knows(part) & counts(part) & runsBeside(part) & captures(part) & waits(part) & fits(part); }

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  loadKernel(count);
  loadKernel(copyWord);
  unsigned groups = 0;
  int processors = 0;
  CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
  bool ok = WORKS(cuCtxGetCurrent, &primary) & WORKS(cuDeviceGetDevResource, 0, &whole, multiprocessors);
  ok &= EXPECT(whole.sm.smCount == static_cast<unsigned>(processors)) & EXPECT(whole.sm.minSmPartitionSize > 0);
  const unsigned size = 2 * whole.sm.minSmPartitionSize;
  ok &= WORKS(cuDevSmResourceSplitByCount, nullptr, &groups, &whole, nullptr, 0, size) & EXPECT(groups >= 4);

  // Kept over the pause point: resources, a descriptor without a green context yet, and green contexts, one of them a part of another one's
  // part.
  CUdevResource parts[4]{}, rest{}, ofFirst{}, quarter{};
  CUdevResourceDesc descriptor = nullptr;
  Green first, pair, nested, all, late, remainder;
  groups = 4;
  ok &= WORKS(cuDevSmResourceSplitByCount, parts, &groups, &whole, &rest, 0, size) & EXPECT(groups == 4);
  for (const CUdevResource& part : parts) ok &= EXPECT(part.sm.smCount == size);
  ok &= EXPECT(rest.sm.smCount == whole.sm.smCount - 4 * size) & EXPECT(rest.type == multiprocessors);
  ok &= first.make(parts) && pair.make(parts + 1, 2) && EXPECT(pair.has() == 2 * size);
  groups = 1;
  ok &= WORKS(cuGreenCtxGetDevResource, first.green, &ofFirst, multiprocessors) & EXPECT(ofFirst.sm.smCount == size);
  ok &= WORKS(cuDevSmResourceSplitByCount, &quarter, &groups, &ofFirst, nullptr, 0, size / 2) & EXPECT(groups == 1);
  ok &= nested.make(&quarter) && EXPECT(nested.has() == size / 2);
  ok &= all.make(descriptor) && counts(all);  // without a descriptor it has the whole device
  ok &= WORKS(cuDevResourceGenerateDesc, &descriptor, parts + 3, 1) & works(first) & counts(nested);
  CUstream blocking = nullptr;
  ok &= WORKS(cuCtxSetCurrent, first.context) & WORKS(cuStreamCreate, &blocking, CU_STREAM_DEFAULT) & WORKS(cuCtxSetCurrent, primary);

  pausePoint();

  ok &= works(first) & counts(pair) & counts(nested) & counts(all) & EXPECT(pair.has() == 2 * size) & WORKS(cuStreamSynchronize, blocking);
  ok &= late.make(descriptor) && works(late) && remainder.make(&rest) && EXPECT(remainder.has() == rest.sm.smCount);
  ok &= counts(remainder) & refusesResources(parts) & takesOddResources(parts) & refusesEnded(parts);
  ok &= nested.end() & WORKS(cuStreamDestroy_v2, blocking) & first.end() & pair.end() & all.end() & late.end() & remainder.end();
  ok &= EXPECT(counted() > 0);
  return verdict("green-contexts", ok);
}
