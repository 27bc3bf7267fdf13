// Contexts and process-wide state: other contexts, partitions of the device, a second device, and exported handles.
#pragma once

#include "../peer-devices.h"
#include "code.h"
#include "graphs.h"

namespace families {

// A context of the thread's own, with code and memory that end with it.
inline bool contexts(const Place& place) {
  static Few few;
  const Few::Entered entered(few);
  CUcontext before, context;
  CUmodule module;
  CUfunction scale;
  CUdeviceptr factor, data;
  CUstream stream;
  size_t bytes = 0;
  Numbers found(codeThreads), wanted(codeThreads);
  for (unsigned i = 0; i < codeThreads; ++i) wanted[i] = place.seed * i;
  CALL(cuCtxGetCurrent, &before);
  CALL(cuCtxCreate, &context, nullptr, 0, 0);
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CALL(cuModuleLoadData, &module, scaleImage);
  CALL(cuModuleGetFunction, &scale, module, "scale");
  CALL(cuModuleGetGlobal, &factor, &bytes, module, "factor");
  CALL(cuMemAlloc, &data, codeThreads * sizeof(uint32_t));
  void* parameters[] = {&data};
  CALL(cuMemcpyHtoDAsync, factor, &place.seed, sizeof place.seed, stream);
  CALL(cuLaunchKernel, scale, 1, 1, 1, codeThreads, 1, 1, 0, stream, parameters, nullptr);
  CALL(cuMemcpyDtoHAsync, found.data(), data, codeThreads * sizeof(uint32_t), stream);
  CALL(cuStreamSynchronize, stream);
  CALL(cuCtxDestroy, context);
  CALL(cuCtxGetCurrent, &context);
  return same("contexts", found, wanted) & EXPECT(context == before);
}

// A part of the multiprocessors, if the device can be partitioned.
inline bool greenContexts(const Place& place) {
  static Few few;
  const Few::Entered entered(few);
  CUdevResource whole{}, part{}, has{};
  CUdevResourceDesc description;
  CUgreenCtx green, ofStream;
  CUstream stream;
  unsigned groups = 1;
  CALL(cuDeviceGetDevResource, 0, &whole, CU_DEV_RESOURCE_TYPE_SM);
  CALL(cuDevSmResourceSplitByCount, &part, &groups, &whole, nullptr, 0, whole.sm.minSmPartitionSize);
  CALL(cuDevResourceGenerateDesc, &description, &part, 1);
  CALL(cuGreenCtxCreate, &green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  CALL(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
  CALL(cuGreenCtxGetDevResource, green, &has, CU_DEV_RESOURCE_TYPE_SM);
  CALL(cuStreamGetGreenCtx, stream, &ofStream);
  DeviceArray<uint32_t> data(place.count());
  place.write(data, place.numbers());
  place.wait();
  place.add(data, 16, stream);
  CALL(cuStreamSynchronize, stream);
  const bool ok = EXPECT(has.sm.smCount == part.sm.smCount) & EXPECT(ofStream == green) & place.holds("green contexts", data, 16);
  CALL(cuStreamDestroy, stream);
  CALL(cuGreenCtxDestroy, green);
  return ok;
}

// Peer access of device 0 to device 1 belongs to the context, so the threads that use it are counted.
class PeerAccess {
 public:
  PeerAccess() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (users++ == 0) CHECK(cudaDeviceEnablePeerAccess(1, 0));
  }
  ~PeerAccess() {
    const std::lock_guard<std::mutex> lock(mutex);
    if (--users == 0) CHECK(cudaDeviceDisablePeerAccess(1));
  }
  PeerAccess(const PeerAccess&) = delete;

 private:
  static inline std::mutex mutex;
  static inline int users = 0;
};

// Device 1 adds, device 0 adds device 1's values to its own, and both are copied across; if there are two peers.
inline bool peers(const Place& place) {
  static const bool reachable = devicesReachEachOther();
  if (!reachable) return true;
  DeviceArray<uint32_t> here(place.count());
  CHECK(cudaMemsetAsync(here, 0, place.bytes(), place.stream));
  CHECK(cudaSetDevice(1));
  bool ok = true;
  {
    const Place other(static_cast<int>(place.seed), 4);
    DeviceArray<uint32_t> there(place.count());
    cudaEvent_t added;
    CHECK(cudaEventCreateWithFlags(&added, cudaEventDisableTiming));
    const Numbers values = place.numbers();
    place.write(there, values);
    place.wait();
    place.add(there, 17, other.stream);
    CHECK(cudaEventRecord(added, other.stream));
    CHECK(cudaSetDevice(0));
    {
      const PeerAccess access;
      CHECK(cudaStreamWaitEvent(place.stream, added, 0));
      addFrom<<<place.blocks(), 128, 0, place.stream>>>(here, there, place.count());
      CHECK(cudaGetLastError());
      place.wait();
    }
    place.add(here, 1);
    CHECK(cudaMemcpyPeerAsync(there, 1, here, 0, place.bytes(), place.stream));
    ok = place.holds("peers", there, 18);
    CHECK(cudaSetDevice(1));
    CHECK(cudaEventDestroy(added));
  }
  CHECK(cudaSetDevice(0));
  return ok;
}

// A graph with a kernel on each device and a copy between them, launched into streams of both; if they are peers.
inline bool graphsAcross(const Place& place) {
  static const bool reachable = devicesReachEachOther();
  if (!reachable) return true;
  DeviceArray<uint32_t> here(place.count());
  cudaGraph_t graph;
  CHECK(cudaGraphCreate(&graph, 0));
  place.write(here, place.numbers());
  place.wait();
  const cudaGraphNode_t first = Adder(place, here, 30).in(graph);
  CHECK(cudaSetDevice(1));
  bool ok = true;
  {
    const Place other(static_cast<int>(place.seed), 5);
    DeviceArray<uint32_t> there(place.count());
    cudaGraphNode_t copy;
    cudaGraphExec_t executable;
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &first, 1, there, here, place.bytes(), cudaMemcpyDefault));
    Adder(place, there, 1).in(graph, copy);
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, other.stream));
    other.wait();
    CHECK(cudaSetDevice(0));
    CHECK(cudaGraphLaunch(executable, place.stream));
    ok = place.holds("graphs across devices", here, 60) & place.holds("graphs across devices", there, 61);
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaSetDevice(1));
  }
  CHECK(cudaGraphDestroy(graph));
  CHECK(cudaSetDevice(0));
  return ok;
}

// Exported handles for other processes: the same each time, and different for each object. (Programs with several processes open them.)
inline bool handles(const Place& place) {
  DeviceArray<uint32_t> data(place.count()), more(place.count());
  cudaIpcMemHandle_t first{}, again{}, other{};
  cudaIpcEventHandle_t ofEvent{}, ofOther{};
  cudaEvent_t event, second;
  place.write(data, place.numbers());
  for (auto* each : {&event, &second}) CHECK(cudaEventCreateWithFlags(each, cudaEventDisableTiming | cudaEventInterprocess));
  CHECK(cudaIpcGetMemHandle(&first, data));
  place.add(data, 18);
  CHECK(cudaIpcGetMemHandle(&again, data));
  CHECK(cudaIpcGetMemHandle(&other, more));
  CHECK(cudaIpcGetEventHandle(&ofEvent, event));
  CHECK(cudaIpcGetEventHandle(&ofOther, second));
  CHECK(cudaEventRecord(event, place.stream));
  CHECK(cudaEventSynchronize(event));
  void* opened = nullptr;
  bool ok = EXPECT(std::memcmp(&first, &again, sizeof first) == 0) & EXPECT(std::memcmp(&first, &other, sizeof first) != 0) &
            EXPECT(std::memcmp(&ofEvent, &ofOther, sizeof ofEvent) != 0) & place.holds("memory that is given", data, 18);
  ok &= EXPECT_ERROR(cudaIpcOpenMemHandle(&opened, first, cudaIpcMemLazyEnablePeerAccess), cudaErrorDeviceUninitialized);
  cudaGetLastError();
  CHECK(cudaEventDestroy(event));
  CHECK(cudaEventDestroy(second));
  return ok;
}

}  // namespace families
