// Results of the CUDA runtime, call by call, where they do not depend on the device: error codes, defaults, values left in outputs. One
// line per call. runtime-conformance.expected is the output with NVIDIA's runtime (CUDA 13.0, driver 580, an H200); vgpu's must print the
// same on every driver. Arguments choose parts by name.
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

__device__ int number = 7;
__constant__ int table[4] = {1, 2, 3, 4};
__managed__ int managed = 3;
__global__ void store(int* to, int value) { to[threadIdx.x] = value + number + managed; }
__global__ void __launch_bounds__(128) small(int* to) { to[threadIdx.x] = threadIdx.x; }
__global__ void shared(int* to) {
  extern __shared__ int block[];
  block[threadIdx.x] = 1;
  __syncthreads();
  to[threadIdx.x] = block[threadIdx.x];
}
__global__ void textured(float* to, cudaTextureObject_t texture) {
  to[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 1);
}

static void say(const char* what, cudaError_t error) {
  std::printf("%s: %s, last %s\n", what, cudaGetErrorName(error), cudaGetErrorName(cudaGetLastError()));
}
static void show(const char* what, long long value) { std::printf("%s = %lld\n", what, value); }
#define SAY(call) say(#call, call)

static void* const garbage = reinterpret_cast<void*>(0x1234);

static void memory() {
  void* p = garbage;
  SAY(cudaMalloc(&p, 0));
  show("null for nothing", p == nullptr);
  SAY(cudaMalloc(nullptr, 4));
  p = garbage;
  SAY(cudaMalloc(&p, size_t{1} << 60));
  SAY(cudaFree(nullptr));
  SAY(cudaFree(garbage));
  int host;
  SAY(cudaFree(&host));
  SAY(cudaFreeHost(nullptr));
  SAY(cudaFreeHost(&host));
  p = garbage;
  SAY(cudaMallocHost(&p, 0));
  show("null for nothing", p == nullptr);
  SAY(cudaHostAlloc(&p, 64, cudaHostAllocMapped | cudaHostAllocPortable));
  unsigned flags = 0;
  SAY(cudaHostGetFlags(&flags, p));
  show("flags", flags);
  void* device = nullptr;
  SAY(cudaHostGetDevicePointer(&device, p, 0));
  show("same address", device == p);
  SAY(cudaFreeHost(p));
  SAY(cudaHostAlloc(&p, 64, 0x100));
  SAY(cudaMallocHost(&p, 64));
  SAY(cudaHostGetFlags(&flags, p));
  show("flags", flags);
  SAY(cudaFreeHost(p));
  SAY(cudaHostUnregister(&host));
  p = garbage;
  SAY(cudaMallocManaged(&p, 0));
  show("null for nothing", p == nullptr);
  SAY(cudaMallocManaged(&p, 64));
  SAY(cudaFree(p));
  size_t pitch = 0;
  SAY(cudaMallocPitch(&p, &pitch, 100, 3));
  show("pitch", static_cast<long long>(pitch));
  SAY(cudaFree(p));
  SAY(cudaMallocPitch(&p, &pitch, 0, 3));
  cudaPitchedPtr box;
  SAY(cudaMalloc3D(&box, make_cudaExtent(100, 3, 2)));
  show("pitch", static_cast<long long>(box.pitch));
  show("xsize", static_cast<long long>(box.xsize));
  show("ysize", static_cast<long long>(box.ysize));
  SAY(cudaFree(box.ptr));
}

static void pointers() {
  auto describe = [](const char* what, const void* p) {
    cudaPointerAttributes a;
    std::memset(&a, 0x55, sizeof a);
    say(what, cudaPointerGetAttributes(&a, p));
    std::printf("  type %d device %d device pointer %s host pointer %s\n", a.type, a.device,
                a.devicePointer == nullptr ? "null" : a.devicePointer == p ? "same" : "other",
                a.hostPointer == nullptr ? "null" : a.hostPointer == p ? "same" : "other");
  };
  int local;
  void *device, *pinned, *unified;
  cudaMalloc(&device, 64);
  cudaMallocHost(&pinned, 64);
  cudaMallocManaged(&unified, 64);
  describe("local", &local);
  describe("null", nullptr);
  describe("device", device);
  describe("pinned", pinned);
  describe("managed", unified);
  describe("inside device", static_cast<char*>(device) + 8);
  cudaFree(device);
  cudaFreeHost(pinned);
  cudaFree(unified);
}

static void copies() {
  char host[256] = "abcdefghijklmnopqrstuvwxyz", back[256] = {};
  void* p;
  cudaMalloc(&p, 256);
  SAY(cudaMemcpy(p, host, 256, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(back, p, 256, cudaMemcpyDefault));
  show("equal", std::memcmp(host, back, 256) == 0);
  SAY(cudaMemcpy(p, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(nullptr, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(nullptr, host, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(p, nullptr, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy(p, host, 4, static_cast<cudaMemcpyKind>(9)));
  SAY(cudaMemcpy(back, host, 26, cudaMemcpyHostToHost));
  SAY(cudaMemcpy(back, host, 26, cudaMemcpyDefault));
  SAY(cudaMemcpy(host, back, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyAsync(p, host, 4, static_cast<cudaMemcpyKind>(-1), nullptr));
  std::memset(back, 0, sizeof back);
  SAY(cudaMemcpy2D(p, 32, host, 10, 10, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(back, 16, p, 32, 10, 2, cudaMemcpyDeviceToHost));
  show("rows", std::memcmp(back, host, 10) == 0 && std::memcmp(back + 16, host + 10, 10) == 0);
  SAY(cudaMemcpy2D(p, 8, host, 10, 10, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(p, 8, host, 10, 0, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemset(p, 0x1ff, 4));
  SAY(cudaMemcpy(back, p, 5, cudaMemcpyDeviceToHost));
  show("filled", static_cast<unsigned char>(back[3]));
  SAY(cudaMemset(nullptr, 0, 0));
  SAY(cudaMemset(nullptr, 0, 4));
  SAY(cudaMemset2D(p, 16, 'x', 4, 3));
  SAY(cudaMemcpy(back, p, 64, cudaMemcpyDeviceToHost));
  show("fill", back[32] == 'x' && back[35] == 'x' && back[36] != 'x');
  SAY(cudaMemcpy3D(nullptr));
  cudaMemcpy3DParms box = {};
  SAY(cudaMemcpy3D(&box));
  box.srcPtr = make_cudaPitchedPtr(host, 8, 8, 2);
  box.dstPtr = make_cudaPitchedPtr(p, 8, 8, 2);
  box.extent = make_cudaExtent(8, 2, 2);
  box.kind = cudaMemcpyHostToDevice;
  SAY(cudaMemcpy3D(&box));
  SAY(cudaMemcpyPeer(p, 0, p, 99, 4));
  cudaFree(p);
}

static void symbols() {
  int value = 0, values[4] = {};
  void* p = nullptr;
  size_t size = 0;
  SAY(cudaMemcpyFromSymbol(&value, number, sizeof value));
  show("number", value);
  SAY(cudaMemcpyFromSymbol(values, table, sizeof values));
  show("table", values[3]);
  SAY(cudaMemcpyToSymbol(table, &value, 4, 8));
  SAY(cudaMemcpyFromSymbol(values, table, 4, 8));
  show("changed", values[0]);
  SAY(cudaMemcpyToSymbol(table, values, 20));
  SAY(cudaMemcpyToSymbol(table, values, 4, 16));
  SAY(cudaMemcpyToSymbol(table, values, 4, 0, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyToSymbol(garbage, values, 4));
  SAY(cudaGetSymbolAddress(&p, number));
  SAY(cudaGetSymbolSize(&size, table));
  show("size", static_cast<long long>(size));
  SAY(cudaGetSymbolAddress(&p, garbage));
  SAY(cudaGetSymbolSize(&size, garbage));
  SAY(cudaGetSymbolAddress(&p, managed));
  show("managed is itself", p == &managed);
  managed = 11;
  SAY(cudaMemcpyFromSymbol(&value, managed, 4));
  show("managed", value);
}

static void launches() {
  int *p, values[4] = {};
  cudaMalloc(&p, 4096);
#define LAUNCH(...) __VA_ARGS__; std::printf("%s: %s\n", #__VA_ARGS__, cudaGetErrorName(cudaGetLastError()))
  LAUNCH(store<<<1, 4>>>(p, 1));
  SAY(cudaMemcpy(values, p, 16, cudaMemcpyDeviceToHost));
  show("stored", values[3]);
  LAUNCH(store<<<0, 1>>>(p, 1));
  LAUNCH(store<<<1, 0>>>(p, 1));
  LAUNCH(store<<<1, 1025>>>(p, 1));
  LAUNCH(store<<<1, dim3(1, 1, 65)>>>(p, 1));
  LAUNCH(store<<<dim3(1, 65536), 1>>>(p, 1));
  LAUNCH(store<<<dim3(0x80000000u), 1>>>(p, 1));
  LAUNCH(small<<<1, 256>>>(p));
  LAUNCH(small<<<1, 128>>>(p));
  LAUNCH(shared<<<1, 32, 48 << 10>>>(p));
  LAUNCH(shared<<<1, 32, (48 << 10) + 1>>>(p));
  SAY(cudaFuncSetAttribute(shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 << 10));
  LAUNCH(shared<<<1, 32, 60 << 10>>>(p));
  SAY(cudaFuncSetAttribute(shared, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 30));
  SAY(cudaFuncSetAttribute(shared, static_cast<cudaFuncAttribute>(77), 1));
  void* arguments[] = {&p, &values[0]};
  SAY(cudaLaunchKernel(nullptr, dim3(1), dim3(1), arguments, 0, nullptr));
  SAY(cudaLaunchKernel(reinterpret_cast<const void*>(store), dim3(1), dim3(1), arguments, 0, nullptr));
  cudaFuncAttributes attributes;
  SAY(cudaFuncGetAttributes(&attributes, small));
  show("threads", attributes.maxThreadsPerBlock);
  cudaKernel_t kernel;
  SAY(cudaGetKernel(&kernel, reinterpret_cast<const void*>(store)));
  SAY(cudaLaunchKernel(reinterpret_cast<const void*>(kernel), dim3(1), dim3(1), arguments, 0, nullptr));
  cudaFunction_t function;
  SAY(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(store)));
  size_t offset, size;
  SAY(cudaFuncGetParamInfo(reinterpret_cast<const void*>(store), 1, &offset, &size));
  show("offset", static_cast<long long>(offset));
  SAY(cudaFuncGetParamInfo(reinterpret_cast<const void*>(store), 2, &offset, &size));
  const char* name = "";
  SAY(cudaFuncGetName(&name, reinterpret_cast<const void*>(store)));
  std::printf("name %s\n", name);
  int blocks = -1;
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 128, 0));
  show("some blocks", blocks > 0);
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, small, 0, 0));
  SAY(cudaDeviceSynchronize());
  cudaFree(p);
}

static void CUDART_CB callback(cudaStream_t, cudaError_t error, void* data) { *static_cast<int*>(data) = 100 + error; }
static void CUDART_CB function(void* data) { *static_cast<int*>(data) += 1; }

static void streams() {
  cudaStream_t stream, other;
  cudaEvent_t event, end;
  unsigned flags = 9;
  int priority = 9, called = 0, device = -1;
  float milliseconds = -1;
  SAY(cudaStreamCreateWithFlags(&stream, 77));
  SAY(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  SAY(cudaStreamGetFlags(stream, &flags));
  show("flags", flags);
  SAY(cudaStreamGetFlags(nullptr, &flags));
  show("flags", flags);
  SAY(cudaStreamCreateWithPriority(&other, 0, -100));
  SAY(cudaStreamGetPriority(other, &priority));
  show("priority is the greatest", priority < 0);
  SAY(cudaStreamGetDevice(stream, &device));
  show("device", device);
  SAY(cudaStreamQuery(stream));
  SAY(cudaStreamQuery(nullptr));
  SAY(cudaStreamAddCallback(stream, callback, &called, 0));
  SAY(cudaLaunchHostFunc(stream, function, &called));
  SAY(cudaStreamSynchronize(stream));
  show("called", called);
  SAY(cudaStreamAddCallback(stream, nullptr, nullptr, 0));
  SAY(cudaEventCreate(&event));
  SAY(cudaEventCreateWithFlags(&end, 0x80));
  SAY(cudaEventCreateWithFlags(&end, cudaEventDisableTiming));
  SAY(cudaEventQuery(event));
  SAY(cudaEventSynchronize(event));
  SAY(cudaEventElapsedTime(&milliseconds, event, event));
  SAY(cudaEventRecord(event, stream));
  SAY(cudaStreamWaitEvent(other, event, 0));
  SAY(cudaStreamWaitEvent(other, event, 5));
  SAY(cudaStreamWaitEvent(other, nullptr, 0));
  SAY(cudaEventSynchronize(event));
  SAY(cudaEventElapsedTime(&milliseconds, event, event));
  show("no time", milliseconds == 0);
  SAY(cudaEventElapsedTime(&milliseconds, event, end));
  SAY(cudaEventElapsedTime(nullptr, event, event));
  SAY(cudaEventRecord(nullptr, stream));
  SAY(cudaEventDestroy(event));
  SAY(cudaEventDestroy(end));
  SAY(cudaEventDestroy(nullptr));
  SAY(cudaStreamDestroy(stream));
  SAY(cudaStreamDestroy(other));
  SAY(cudaStreamDestroy(nullptr));
  SAY(cudaStreamSynchronize(cudaStreamPerThread));
  SAY(cudaStreamSynchronize(cudaStreamLegacy));
}

static void devices() {
  int value = -1;
  size_t size = 0;
  unsigned flags = 77;
  SAY(cudaSetDevice(-1));
  SAY(cudaSetDevice(4711));
  SAY(cudaGetDevice(&value));
  show("device", value);
  SAY(cudaGetDevice(nullptr));
  SAY(cudaGetDeviceCount(nullptr));
  SAY(cudaSetDevice(0));
  SAY(cudaGetDeviceFlags(&flags));
  show("flags", flags);
  SAY(cudaSetDeviceFlags(0x1000));
  SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
  show("warp", value);
  SAY(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 4711));
  SAY(cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(9999), 0));
  SAY(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
  cudaDeviceProp properties;
  SAY(cudaGetDeviceProperties(&properties, 0));
  show("warp", properties.warpSize);
  show("threads", properties.maxThreadsPerBlock);
  SAY(cudaGetDeviceProperties(&properties, 4711));
  SAY(cudaDeviceGetLimit(&size, cudaLimitStackSize));
  show("stack", static_cast<long long>(size));
  SAY(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
  SAY(cudaDeviceGetLimit(&size, cudaLimitStackSize));
  show("stack", static_cast<long long>(size));
  SAY(cudaDeviceGetLimit(&size, static_cast<cudaLimit>(99)));
  SAY(cudaDeviceCanAccessPeer(&value, 0, 0));
  show("peer", value);
  SAY(cudaDeviceEnablePeerAccess(0, 0));
  SAY(cudaDeviceEnablePeerAccess(4711, 0));
  SAY(cudaDeviceDisablePeerAccess(0));
  SAY(cudaRuntimeGetVersion(&value));
  show("runtime", value);
  char text[32];
  SAY(cudaDeviceGetPCIBusId(text, sizeof text, 0));
  SAY(cudaDeviceGetByPCIBusId(&value, text));
  show("device", value);
  SAY(cudaDeviceGetByPCIBusId(&value, "nonsense"));
  SAY(cudaDeviceGetPCIBusId(text, 2, 0));
  int none[] = {4711};
  SAY(cudaSetValidDevices(none, 1));
  SAY(cudaInitDevice(0, 0, 0));
  SAY(cudaInitDevice(4711, 0, 0));
}

static void arrays() {
  cudaArray_t array;
  cudaChannelFormatDesc element = cudaCreateChannelDesc<float>(), read = {};
  cudaExtent extent;
  unsigned flags = 77;
  float values[8] = {0, 1, 2, 3, 4, 5, 6, 7}, back[8] = {}, *p;
  SAY(cudaMallocArray(&array, &element, 4, 2));
  SAY(cudaArrayGetInfo(&read, &extent, &flags, array));
  std::printf("  %d %d %d %d kind %d, %zu %zu %zu, flags %u\n", read.x, read.y, read.z, read.w, read.f, extent.width,
              extent.height, extent.depth, flags);
  SAY(cudaMemcpy2DToArray(array, 0, 0, values, 16, 16, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2DFromArray(back, 16, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
  show("equal", std::memcmp(values, back, sizeof values) == 0);
  cudaMemcpy3DParms box = {};
  box.srcArray = array;
  box.srcPos = make_cudaPos(1, 1, 0);
  box.dstPtr = make_cudaPitchedPtr(back, 8, 2, 1);
  box.extent = make_cudaExtent(2, 1, 1);
  box.kind = cudaMemcpyDeviceToHost;
  SAY(cudaMemcpy3D(&box));
  show("element", static_cast<long long>(back[0]));
  SAY(cudaMemcpyToArray(array, 8, 0, values, 16, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyFromArray(back, array, 0, 0, 32, cudaMemcpyDeviceToHost));
  show("wrapped", static_cast<long long>(back[2] * 1000 + back[3] * 100 + back[4] * 10 + back[5]));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc description = {};
  cudaTextureObject_t texture;
  cudaMalloc(&p, 16);
  SAY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  textured<<<1, 4>>>(p, texture);
  SAY(cudaMemcpy(back, p, 16, cudaMemcpyDeviceToHost));
  show("texel", static_cast<long long>(back[3]));
  SAY(cudaGetTextureObjectTextureDesc(&description, texture));
  show("read mode", description.readMode);
  SAY(cudaGetTextureObjectResourceDesc(&resource, texture));
  show("resource", resource.resType);
  SAY(cudaDestroyTextureObject(texture));
  description.filterMode = cudaFilterModeLinear;
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {p, cudaCreateChannelDesc<int>(), 16};
  SAY(cudaCreateTextureObject(&texture, &resource, &description, nullptr));
  SAY(cudaFreeArray(array));
  SAY(cudaFreeArray(nullptr));
  element.x = 13;
  SAY(cudaMallocArray(&array, &element, 4, 2));
  SAY(cudaMallocArray(&array, nullptr, 4, 2));
  cudaFree(p);
}

static void pools() {
  cudaMemPool_t pool;
  void* p = garbage;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  SAY(cudaDeviceGetDefaultMemPool(&pool, 0));
  SAY(cudaMallocAsync(&p, 0, stream));
  show("null for nothing", p == nullptr);
  SAY(cudaMallocAsync(&p, 1 << 20, stream));
  SAY(cudaFreeAsync(p, stream));
  SAY(cudaFreeAsync(nullptr, stream));
  SAY(cudaMallocFromPoolAsync(&p, 64, pool, stream));
  SAY(cudaFree(p));
  uint64_t threshold = 77;
  SAY(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  show("threshold", static_cast<long long>(threshold));
  SAY(cudaMemPoolTrimTo(pool, 0));
  SAY(cudaStreamDestroy(stream));
}

static void graphs() {
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  int *p, values[4] = {};
  size_t count = 0;
  cudaMalloc(&p, 64);
  cudaStreamCreate(&stream);
  SAY(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  store<<<1, 4, 0, stream>>>(p, 100);
  SAY(cudaMemcpyAsync(values, p, 16, cudaMemcpyDeviceToHost, stream));
  SAY(cudaStreamEndCapture(stream, &graph));
  SAY(cudaGraphGetNodes(graph, nullptr, &count));
  show("nodes", static_cast<long long>(count));
  std::vector<cudaGraphNode_t> nodes(count);
  SAY(cudaGraphGetNodes(graph, nodes.data(), &count));
  for (cudaGraphNode_t node : nodes) {
    cudaGraphNodeType type;
    cudaGraphNodeGetType(node, &type);
    show("type", type);
    if (type != cudaGraphNodeTypeKernel) continue;
    cudaKernelNodeParams parameters;
    SAY(cudaGraphKernelNodeGetParams(node, &parameters));
    show("host function", parameters.func == reinterpret_cast<void*>(store));
    int value = 200;
    void* arguments[] = {&p, &value};
    parameters.kernelParams = arguments;
    SAY(cudaGraphKernelNodeSetParams(node, &parameters));
  }
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  show("value", values[3] - managed);
  SAY(cudaGraphExecDestroy(executable));
  SAY(cudaGraphDestroy(graph));
  SAY(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t fill, copy;
  cudaMemsetParams parameters = {p, 0, 5, 1, 16, 1};
  SAY(cudaGraphAddMemsetNode(&fill, graph, nullptr, 0, &parameters));
  SAY(cudaGraphAddMemcpyNode1D(&copy, graph, &fill, 1, values, p, 16, cudaMemcpyDeviceToHost));
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  show("filled", values[3]);
  SAY(cudaStreamEndCapture(stream, &graph));
  SAY(cudaGraphLaunch(nullptr, stream));
  cudaStreamDestroy(stream);
  cudaFree(p);
}

// Runs last: a context with a sticky error stays unusable.
static void sticky() {
  store<<<1, 1>>>(reinterpret_cast<int*>(0x10), 1);
  std::printf("launch: %s\n", cudaGetErrorName(cudaPeekAtLastError()));
  std::printf("synchronize: %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  std::printf("take: %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("take again: %s\n", cudaGetErrorName(cudaGetLastError()));
  void* p;
  SAY(cudaMalloc(&p, 4));
  SAY(cudaDeviceSynchronize());
  store<<<1, 1>>>(nullptr, 1);
  std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
  SAY(cudaDeviceReset());
}

int main(int count, char** arguments) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // so that a crash does not lose earlier lines
  struct {
    const char* name;
    void (*run)();
  } parts[] = {{"memory", memory},     {"pointers", pointers}, {"copies", copies},   {"symbols", symbols},
               {"launches", launches}, {"streams", streams},   {"devices", devices}, {"arrays", arrays},
               {"pools", pools},       {"graphs", graphs},     {"sticky", sticky}};
  for (auto& part : parts) {
    if (count > 1 && std::strcmp(arguments[1], part.name) != 0) continue;
    std::printf("-- %s\n", part.name);
    part.run();
  }
  return 0;
}
