// Every family of calls from a hundred threads at once, each with objects of its own: no thread sees a result or an error of
// another, and none waits for ever. Each goes through all families, beginning with another one, and again until SECONDS have
// passed since the pause.
//   many-families [SECONDS [THREADS]]
#include <chrono>
#include <thread>

#include "driver-entry.h"

namespace {

using Numbers = std::vector<uint32_t>;

__global__ void addTo(uint32_t* data, int count, uint32_t value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] += value;
}

__global__ void fetch(cudaTextureObject_t texture, uint32_t* data, int width, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) data[i] = tex2D<uint32_t>(texture, i % width, i / width);
}

// What a thread makes in one family: its numbers, and a stream that neither waits for others' nor lets them wait.
struct Place {
  uint32_t seed;
  cudaStream_t stream = nullptr;

  Place(int thread, int round) : seed(static_cast<uint32_t>(thread) * 1000003 + static_cast<uint32_t>(round) * 257 + 1) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  }
  ~Place() { CHECK(cudaStreamDestroy(stream)); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  int count() const { return 100 + static_cast<int>(seed % 4000); }
  size_t bytes() const { return count() * sizeof(uint32_t); }
  Numbers numbers(uint32_t more = 0) const {
    Numbers values(count());
    for (size_t i = 0; i < values.size(); ++i) values[i] = seed + static_cast<uint32_t>(i) * 3 + more;
    return values;
  }
  void add(uint32_t* data, uint32_t value, cudaStream_t in) const {
    addTo<<<blocksFor(count(), 128), 128, 0, in>>>(data, count(), value);
    CHECK(cudaGetLastError());
  }
  void add(uint32_t* data, uint32_t value) const { add(data, value, stream); }
  void write(uint32_t* data, const Numbers& values) const {
    CHECK(cudaMemcpyAsync(data, values.data(), bytes(), cudaMemcpyHostToDevice, stream));
  }
  void wait() const { CHECK(cudaStreamSynchronize(stream)); }
  // Whether `data` holds the thread's numbers, each with `more` added.
  bool holds(const char* family, const uint32_t* data, uint32_t more) const {
    Numbers found(count());
    CHECK(cudaMemcpyAsync(found.data(), data, bytes(), cudaMemcpyDefault, stream));
    wait();
    return same(family, found, numbers(more));
  }
};

bool memory(const Place& place) {
  uint32_t* data = nullptr;
  CHECK(cudaMalloc(&data, place.bytes()));
  place.write(data, place.numbers());
  place.add(data, 1);
  const bool ok = place.holds("memory", data, 1);
  CHECK(cudaFree(data));
  return ok;
}

bool pool(const Place& place) {
  uint32_t *data = nullptr, *copy = nullptr;
  CHECK(cudaMallocAsync(&data, place.bytes(), place.stream));
  CHECK(cudaMallocAsync(&copy, place.bytes(), place.stream));
  place.write(data, place.numbers());
  CHECK(cudaMemsetAsync(copy, 0xff, place.bytes(), place.stream));
  place.add(data, 2);
  CHECK(cudaMemcpyAsync(copy, data, place.bytes(), cudaMemcpyDeviceToDevice, place.stream));
  CHECK(cudaFreeAsync(data, place.stream));
  const bool ok = place.holds("pool", copy, 2);
  CHECK(cudaFreeAsync(copy, place.stream));
  return ok;
}

bool pinned(const Place& place) {
  uint32_t* data = nullptr;
  CHECK(cudaMallocHost(&data, place.bytes()));
  const Numbers values = place.numbers();
  std::copy(values.begin(), values.end(), data);
  place.add(data, 3);
  place.wait();
  const bool ok = same("pinned", Numbers(data, data + place.count()), place.numbers(3));
  CHECK(cudaFreeHost(data));
  return ok;
}

bool events(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Place other(static_cast<int>(place.seed), 1);
  cudaEvent_t written, added;
  CHECK(cudaEventCreate(&written));
  CHECK(cudaEventCreate(&added));
  place.write(data, place.numbers());
  CHECK(cudaEventRecord(written, place.stream));
  CHECK(cudaStreamWaitEvent(other.stream, written, 0));
  place.add(data, 4, other.stream);
  CHECK(cudaEventRecord(added, other.stream));
  CHECK(cudaEventSynchronize(added));
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, written, added));
  bool ok = EXPECT(cudaEventQuery(added) == cudaSuccess) & EXPECT(milliseconds >= 0) & place.holds("events", data, 4);
  CHECK(cudaEventDestroy(written));
  CHECK(cudaEventDestroy(added));
  return ok;
}

bool hostFunctions(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  Numbers values = place.numbers(), found(place.count());
  struct Sum {
    const Numbers& of;
    uint64_t value;
  } sum{found, 0};
  place.write(data, values);
  place.add(data, 5);
  CHECK(cudaMemcpyAsync(found.data(), data, place.bytes(), cudaMemcpyDeviceToHost, place.stream));
  CHECK(cudaLaunchHostFunc(
      place.stream,
      [](void* to) {
        auto& sum = *static_cast<Sum*>(to);
        for (uint32_t value : sum.of) sum.value += value;
      },
      &sum));
  place.wait();
  uint64_t wanted = 0;
  for (uint32_t value : place.numbers(5)) wanted += value;
  return EXPECT(sum.value == wanted);
}

bool launchTwice(const Place& place, const char* family, cudaGraph_t graph, const uint32_t* data, uint32_t eachAdds) {
  cudaGraphExec_t exec;
  CHECK(cudaGraphInstantiate(&exec, graph, 0));
  CHECK(cudaGraphLaunch(exec, place.stream));
  CHECK(cudaGraphLaunch(exec, place.stream));
  const bool ok = place.holds(family, data, 2 * eachAdds);
  CHECK(cudaGraphExecDestroy(exec));
  CHECK(cudaGraphDestroy(graph));
  return ok;
}

bool captures(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  const Place other(static_cast<int>(place.seed), 2);
  cudaEvent_t fork, join;
  CHECK(cudaEventCreateWithFlags(&fork, cudaEventDisableTiming));
  CHECK(cudaEventCreateWithFlags(&join, cudaEventDisableTiming));
  place.write(data, place.numbers());
  CHECK(cudaStreamBeginCapture(place.stream, cudaStreamCaptureModeThreadLocal));
  place.add(data, 6);
  CHECK(cudaEventRecord(fork, place.stream));
  CHECK(cudaStreamWaitEvent(other.stream, fork, 0));
  place.add(data, 7, other.stream);
  CHECK(cudaEventRecord(join, other.stream));
  CHECK(cudaStreamWaitEvent(place.stream, join, 0));
  place.add(data, 8);
  cudaGraph_t graph;
  CHECK(cudaStreamEndCapture(place.stream, &graph));
  CHECK(cudaEventDestroy(fork));
  CHECK(cudaEventDestroy(join));
  return launchTwice(place, "captures", graph, data, 6 + 7 + 8);
}

bool graphs(const Place& place) {
  DeviceArray<uint32_t> data(place.count());
  place.write(data, place.numbers());
  cudaGraph_t graph;
  cudaGraphNode_t first, second;
  uint32_t* address = data;
  int count = place.count();
  uint32_t value = 9;
  void* parameters[] = {&address, &count, &value};
  cudaKernelNodeParams node{};
  node.func = reinterpret_cast<void*>(addTo);
  node.gridDim = dim3(blocksFor(place.count(), 128));
  node.blockDim = dim3(128);
  node.kernelParams = parameters;
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaGraphAddKernelNode(&first, graph, nullptr, 0, &node));
  CHECK(cudaGraphAddKernelNode(&second, graph, &first, 1, &node));
  value = 10;
  CHECK(cudaGraphKernelNodeSetParams(second, &node));
  return launchTwice(place, "graphs", graph, data, 9 + 10);
}

bool modules(const Place& place) {
  const char* const image = R"(
.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 factor;
.visible .entry scale(.param .u64 out)
{
  .reg .b32 %factor, %value, %i;
  .reg .b64 %base, %offset;
  ld.param.u64 %base, [out];
  cvta.to.global.u64 %base, %base;
  mov.u32 %i, %tid.x;
  mul.wide.u32 %offset, %i, 4;
  add.s64 %base, %base, %offset;
  ld.global.u32 %factor, [factor];
  mul.lo.u32 %value, %factor, %i;
  st.global.u32 [%base], %value;
  ret;
}
)";
  const unsigned threads = 64;
  DeviceArray<uint32_t> data(threads);
  CUmodule module;
  CUfunction scale;
  CUdeviceptr factor;
  size_t bytes = 0;
  uint32_t* address = data;
  void* parameters[] = {&address};
  Numbers found(threads), wanted(threads);
  for (unsigned i = 0; i < threads; ++i) wanted[i] = place.seed * i;
  CALL(cuModuleLoadData, &module, image);
  CALL(cuModuleGetFunction, &scale, module, "scale");
  CALL(cuModuleGetGlobal, &factor, &bytes, module, "factor");
  CALL(cuMemcpyHtoDAsync, factor, &place.seed, sizeof place.seed, place.stream);
  CALL(cuLaunchKernel, scale, 1, 1, 1, threads, 1, 1, 0, place.stream, parameters, nullptr);
  CHECK(cudaMemcpyAsync(found.data(), data, threads * sizeof(uint32_t), cudaMemcpyDeviceToHost, place.stream));
  place.wait();
  CALL(cuModuleUnload, module);
  return same("modules", found, wanted);
}

bool textures(const Place& place) {
  const int width = 16, height = place.count() / width + 1;
  Numbers texels(width * height);
  for (size_t i = 0; i < texels.size(); ++i) texels[i] = place.seed + static_cast<uint32_t>(i) * 3;
  DeviceArray<uint32_t> data(place.count());
  const cudaChannelFormatDesc format = cudaCreateChannelDesc<uint32_t>();
  cudaArray_t array;
  CHECK(cudaMallocArray(&array, &format, width, height));
  CHECK(cudaMemcpy2DToArrayAsync(array, 0, 0, texels.data(), width * sizeof(uint32_t), width * sizeof(uint32_t), height,
                                 cudaMemcpyHostToDevice, place.stream));
  cudaResourceDesc resource{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc reading{};
  reading.readMode = cudaReadModeElementType;
  cudaTextureObject_t texture;
  CHECK(cudaCreateTextureObject(&texture, &resource, &reading, nullptr));
  fetch<<<blocksFor(place.count(), 128), 128, 0, place.stream>>>(texture, data, width, place.count());
  const bool ok = place.holds("textures", data, 0);
  CHECK(cudaDestroyTextureObject(texture));
  CHECK(cudaFreeArray(array));
  return ok;
}

bool managed(const Place& place) {
  uint32_t* data = nullptr;
  CHECK(cudaMallocManaged(&data, place.bytes()));
  CHECK(cudaStreamAttachMemAsync(place.stream, data, 0, cudaMemAttachSingle));
  place.wait();
  const Numbers values = place.numbers();
  std::copy(values.begin(), values.end(), data);
  place.add(data, 11);
  place.wait();
  const bool ok = same("managed", Numbers(data, data + place.count()), place.numbers(11));
  CHECK(cudaFree(data));
  return ok;
}

bool virtualMemory(const Place& place) {
  CUmemAllocationProp of{};
  of.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
  CUmemAccessDesc access{of.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  size_t bytes = 0;
  CUdeviceptr address;
  CUmemGenericAllocationHandle physical;
  CALL(cuMemGetAllocationGranularity, &bytes, &of, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  CALL(cuMemAddressReserve, &address, bytes, 0, 0, 0);
  CALL(cuMemCreate, &physical, bytes, &of, 0);
  CALL(cuMemMap, address, bytes, 0, physical, 0);
  CALL(cuMemSetAccess, address, bytes, &access, 1);
  auto* data = reinterpret_cast<uint32_t*>(address);
  place.write(data, place.numbers());
  place.add(data, 12);
  const bool ok = place.holds("virtual memory", data, 12);
  CALL(cuMemUnmap, address, bytes);
  CALL(cuMemRelease, physical);
  CALL(cuMemAddressFree, address, bytes);
  return ok;
}

// A refused call leaves its error with the thread that made it, and nothing else.
bool errors(const Place& place) {
  void* data = nullptr;
  bool ok = EXPECT(cudaPeekAtLastError() == cudaSuccess);
  ok &= EXPECT_ERROR(cudaMalloc(&data, size_t{1} << 60), cudaErrorMemoryAllocation);
  ok &= EXPECT_ERROR(cudaGetLastError(), cudaErrorMemoryAllocation);
  ok &= EXPECT_ERROR(cudaMemsetAsync(nullptr, 0, 4, place.stream), cudaErrorInvalidValue);
  return ok & EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
}

constexpr bool (*families[])(const Place&) = {memory, pool,    pinned,   events,  hostFunctions, captures,
                                              graphs, modules, textures, managed, virtualMemory, errors};

using Clock = std::chrono::steady_clock;

std::atomic<bool> ok{true}, goesOn{true};
std::atomic<uint64_t> done{0};

void work(int thread) {
  int round = 0;
  do {
    for (size_t i = 0; i < std::size(families); ++i, ++round) {
      if (!families[(thread + i) % std::size(families)](Place(thread, round))) ok = false;
      ++done;
    }
  } while (goesOn && ok);
}

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 5;
  const int count = argc > 2 ? std::atoi(argv[2]) : 100;
  CHECK(cudaFree(nullptr));
  loadKernel(addTo);
  loadKernel(fetch);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, i);
  pausePoint();
  for (const auto end = Clock::now() + std::chrono::duration<double>(seconds); ok && Clock::now() < end;) usleep(10000);
  goesOn = false;
  for (auto& thread : threads) thread.join();
  std::fprintf(stderr, "%d threads have used a family %llu times\n", count, static_cast<unsigned long long>(done.load()));
  CHECK(cudaDeviceSynchronize());
  return verdict("many-families", ok);
}
