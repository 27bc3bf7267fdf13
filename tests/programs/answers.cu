// Queries whose results follow from the program's own settings: every result is bitwise the same before and after the pause.
#include <cstring>
#include <map>
#include <string>

#include "driver-entry.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // for two functions of the bank size

namespace {

__constant__ float table[16];
__device__ int counters[3];

__global__ void spin(int* out, int rounds, double unused) {
  extern __shared__ int scratch[];
  __shared__ int fixed[100];
  scratch[threadIdx.x] = fixed[threadIdx.x % 100] = rounds;
  __syncthreads();
  for (int i = 0; i < rounds; ++i) scratch[threadIdx.x] += i;
  if (out) out[0] = scratch[0] + fixed[0] + int(table[0]) + counters[0] + int(unused);
}

// Query results by name; two sets are equal if all bytes are.
class Answers {
 public:
  template <typename T>
  void add(const std::string& question, const T& value) {
    answers[question] = std::string(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void addText(const std::string& question, const char* text) { answers[question] = text; }

  bool same(const Answers& after) const {
    bool ok = answers.size() == after.answers.size();
    for (auto& [question, answer] : answers) {
      auto other = after.answers.find(question);
      if (other != after.answers.end() && other->second == answer) continue;
      ok = false;
      std::fprintf(stderr, "%s: before", question.c_str());
      for (unsigned char byte : answer.substr(0, 16)) std::fprintf(stderr, " %02x", byte);
      std::fprintf(stderr, ", after");
      if (other != after.answers.end())
        for (unsigned char byte : other->second.substr(0, 16)) std::fprintf(stderr, " %02x", byte);
      std::fprintf(stderr, "\n");
    }
    return ok;
  }

 private:
  std::map<std::string, std::string> answers;
};

// Records the error instead of a value: for a call that the driver or the session does not support.
#define ASK(answers, question, value, call) \
  do {                                      \
    const auto result = (call);             \
    (answers).add(question, value);         \
    (answers).add(std::string(question) + " (result)", result); \
  } while (false)

struct Objects {
  cudaStream_t streams[3];
  cudaEvent_t events[4];
  cudaMemPool_t pool;
  void *device, *pinned, *managed, *pooled;
  cudaArray_t array;
  cudaTextureObject_t texture;

  Objects() {
    CHECK(cudaSetDeviceFlags(cudaDeviceScheduleBlockingSync));
    CHECK(cudaFree(nullptr));
    int least = 0, greatest = 0;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    CHECK(cudaStreamCreateWithPriority(&streams[0], cudaStreamNonBlocking, greatest));
    CHECK(cudaStreamCreateWithPriority(&streams[1], cudaStreamDefault, least));
    CHECK(cudaStreamCreateWithFlags(&streams[2], cudaStreamNonBlocking));
    for (auto& event : events) CHECK(cudaEventCreate(&event));
    set();
    cudaMemPoolProps properties{};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location = {cudaMemLocationTypeDevice, 0};
    CHECK(cudaMemPoolCreate(&pool, &properties));
    size_t threshold = 64 << 20;
    int no = 0;
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CHECK(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseFollowEventDependencies, &no));
    CHECK(cudaMallocFromPoolAsync(&pooled, 3 << 20, pool, streams[2]));
    CHECK(cudaMalloc(&device, 10000));
    CHECK(cudaHostAlloc(&pinned, 5000, cudaHostAllocPortable | cudaHostAllocMapped));
    CHECK(cudaMallocManaged(&managed, 7000));
    makeTexture();
    record();
  }

  // Changes settings of the context and of the kernel. Settings that the device refuses, it refuses before and after the pause.
  void set() {
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    CHECK(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 16 << 20));
    CHECK(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributeMaxDynamicSharedMemorySize, 60 << 10));
    CHECK(cudaFuncSetAttribute(spin, cudaFuncAttributePreferredSharedMemoryCarveout, 75));
    CHECK(cudaFuncSetCacheConfig(spin, cudaFuncCachePreferShared));
    CHECK(cudaDeviceSetSharedMemConfig(cudaSharedMemBankSizeEightByte));
    CHECK(cudaFuncSetSharedMemConfig(spin, cudaSharedMemBankSizeEightByte));
  }

  void makeTexture() {
    const auto element = cudaCreateChannelDesc<float4>();
    CHECK(cudaMallocArray(&array, &element, 64, 32, cudaArraySurfaceLoadStore));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc sampling{};
    sampling.addressMode[0] = cudaAddressModeClamp;
    sampling.filterMode = cudaFilterModeLinear;
    sampling.borderColor[2] = 0.25f;
    CHECK(cudaCreateTextureObject(&texture, &resource, &sampling, nullptr));
  }

  // Records two events in one stream and two in different streams, with work between them.
  void record() {
    CHECK(cudaEventRecord(events[0], streams[0]));
    spin<<<4, 64, 1024, streams[0]>>>(nullptr, 2000, 0.5);
    CHECK(cudaEventRecord(events[1], streams[0]));
    CHECK(cudaStreamSynchronize(streams[0]));
    CHECK(cudaEventRecord(events[2], streams[1]));
    CHECK(cudaDeviceSynchronize());
  }
};

void askDevice(Answers& answers) {
  cudaDeviceProp properties;
  std::memset(&properties, 0, sizeof properties);  // including its padding, which CUDA does not write
  char text[64] = "";
  int value = 0, version = 0;
  unsigned flags = 0;
  CHECK(cudaGetDeviceProperties(&properties, 0));
  answers.add("device properties", properties);
  for (int i = 1; i < CU_DEVICE_ATTRIBUTE_MAX; ++i)
    ASK(answers, "attribute " + std::to_string(i), value,
        (value = 0, cudaDeviceGetAttribute(&value, static_cast<cudaDeviceAttr>(i), 0)));
  CHECK(cudaDeviceGetPCIBusId(text, sizeof text, 0));
  answers.addText("bus", text);
  ASK(answers, "device flags", flags, cudaGetDeviceFlags(&flags));
  ASK(answers, "context flags", flags, DRIVER(cuCtxGetFlags)(&flags));
  ASK(answers, "driver version", version, cudaDriverGetVersion(&version));
  CUmoduleLoadingMode mode;
  ASK(answers, "loading mode", mode, DRIVER(cuModuleGetLoadingMode)(&mode));
}

void askContext(Answers& answers) {
  size_t limit = 0;
  for (int i = 0; i < cudaLimitPersistingL2CacheSize + 1; ++i)
    ASK(answers, "limit " + std::to_string(i), limit, (limit = 0, cudaDeviceGetLimit(&limit, static_cast<cudaLimit>(i))));
  cudaFuncCache cache{};
  cudaSharedMemConfig banks{};
  ASK(answers, "cache configuration", cache, cudaDeviceGetCacheConfig(&cache));
  ASK(answers, "bank size", banks, cudaDeviceGetSharedMemConfig(&banks));
}

void askFunction(Answers& answers) {
  cudaFuncAttributes attributes;
  int blocks = 0, grid = 0, block = 0;
  size_t shared = 0, offset = 0, size = 0;
  void* address = nullptr;
  const char* name = nullptr;
  std::memset(&attributes, 0, sizeof attributes);
  CHECK(cudaFuncGetAttributes(&attributes, spin));
  answers.add("function attributes", attributes);
  ASK(answers, "occupancy", blocks, cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, spin, 256, 50 << 10));
  ASK(answers, "shared memory for blocks", shared, cudaOccupancyAvailableDynamicSMemPerBlock(&shared, spin, 2, 256));
  CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, spin, size_t(1024)));
  answers.add("best grid", grid);
  answers.add("best block", block);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(cudaFuncGetParamInfo(reinterpret_cast<const void*>(spin), i, &offset, &size));
    answers.add("parameter offset " + std::to_string(i), offset);
    answers.add("parameter size " + std::to_string(i), size);
  }
  CHECK(cudaFuncGetName(&name, reinterpret_cast<const void*>(spin)));
  answers.addText("function name", name);
  CHECK(cudaGetSymbolAddress(&address, table));
  answers.add("constant's address", address);
  CHECK(cudaGetSymbolAddress(&address, counters));
  answers.add("variable's address", address);
  CHECK(cudaGetSymbolSize(&size, counters));
  answers.add("variable's size", size);
}

void askStreams(Answers& answers, const Objects& objects) {
  for (int i = 0; i < 3; ++i) {
    const std::string stream = "stream " + std::to_string(i);
    int priority = 0;
    unsigned flags = 0;
    unsigned long long id = 0;
    CHECK(cudaStreamGetPriority(objects.streams[i], &priority));
    CHECK(cudaStreamGetFlags(objects.streams[i], &flags));
    CHECK(cudaStreamGetId(objects.streams[i], &id));
    answers.add(stream + " priority", priority);
    answers.add(stream + " flags", flags);
    answers.add(stream + " id", id);
    answers.add(stream + " query", cudaStreamQuery(objects.streams[i]));
  }
  for (int i = 0; i < 4; ++i) {
    answers.add("event " + std::to_string(i), cudaEventQuery(objects.events[i]));
    for (int j = 0; j < 4; ++j) {
      float milliseconds = 0;
      ASK(answers, "time from " + std::to_string(i) + " to " + std::to_string(j), milliseconds,
          cudaEventElapsedTime(&milliseconds, objects.events[i], objects.events[j]));
    }
  }
  cudaGetLastError();
}

void askMemory(Answers& answers, const Objects& objects) {
  for (void* address : {objects.device, objects.pinned, objects.managed, objects.pooled}) {
    cudaPointerAttributes attributes;
    char name[32];
    std::snprintf(name, sizeof name, "pointer %p", address);
    CHECK(cudaPointerGetAttributes(&attributes, address));
    // Field by field: CUDA leaves uninitialized stack bytes in the structure's reserved part.
    answers.add(std::string(name) + " type", attributes.type);
    answers.add(std::string(name) + " device", attributes.device);
    answers.add(std::string(name) + " on the device", attributes.devicePointer);
    answers.add(std::string(name) + " on the host", attributes.hostPointer);
    unsigned long long id = 0;
    CUcontext context = nullptr;
    ASK(answers, std::string(name) + " id", id,
        DRIVER(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, reinterpret_cast<CUdeviceptr>(address)));
    ASK(answers, std::string(name) + " context", context,
        DRIVER(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, reinterpret_cast<CUdeviceptr>(address)));
  }
  unsigned flags = 0;
  CHECK(cudaHostGetFlags(&flags, objects.pinned));
  answers.add("pinned memory's flags", flags);
  size_t available = 0, total = 0;
  CHECK(cudaMemGetInfo(&available, &total));
  answers.add("total memory", total);
  for (auto pool : {objects.pool, cudaMemPool_t{}}) {
    const std::string which = pool ? "pool attribute " : "default pool attribute ";
    if (!pool) CHECK(cudaDeviceGetDefaultMemPool(&pool, 0));
    for (int i = cudaMemPoolReuseFollowEventDependencies; i <= cudaMemPoolAttrUsedMemHigh; ++i) {
      uint64_t value = 0;
      CHECK(cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(i), &value));
      answers.add(which + std::to_string(i), value);
    }
  }
}

void askArrays(Answers& answers, const Objects& objects) {
  cudaChannelFormatDesc element;
  cudaExtent extent;
  unsigned flags = 0;
  cudaTextureDesc sampling;
  std::memset(&sampling, 0, sizeof sampling);
  CHECK(cudaArrayGetInfo(&element, &extent, &flags, objects.array));
  answers.add("element", element);
  answers.add("extent", extent);
  answers.add("array's flags", flags);
  answers.add("texture", objects.texture);
  CHECK(cudaGetTextureObjectTextureDesc(&sampling, objects.texture));
  answers.add("sampling", sampling);
}

Answers askAll(const Objects& objects) {
  Answers answers;
  askDevice(answers);
  askContext(answers);
  askFunction(answers);
  askStreams(answers, objects);
  askMemory(answers, objects);
  askArrays(answers, objects);
  return answers;
}

}  // namespace

int main() {
  const Objects objects;
  const Answers before = askAll(objects);
  float milliseconds = 0;
  CHECK(cudaEventElapsedTime(&milliseconds, objects.events[0], objects.events[1]));
  bool ok = EXPECT(milliseconds > 0) & before.same(askAll(objects));  // queries have no side effects
  pausePoint();
  ok &= before.same(askAll(objects));

  // An elapsed time from an event before the pause to one after it is continuous, and the settings still apply.
  CHECK(cudaEventRecord(objects.events[3], objects.streams[0]));
  CHECK(cudaEventSynchronize(objects.events[3]));
  float longer = 0;
  CHECK(cudaEventElapsedTime(&longer, objects.events[1], objects.events[3]));
  spin<<<1, 64, 60 << 10>>>(nullptr, 1, 0.5);
  CHECK(cudaGetLastError());
  CHECK(cudaDeviceSynchronize());
  return verdict("answers", ok & EXPECT(longer > 0));
}
