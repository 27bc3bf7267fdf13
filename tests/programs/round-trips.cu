// Calls whose result the client knows must not go to the worker each time, nor copies of many rows once per row. The test counts frames in
// the ring and measures no time.
#include <cstring>
#include <string>

#include "driver-entry.h"

#include "crossings.h"

__global__ void warmUp(int* value) { *value = 1; }
__global__ void addOne(int* value) { *value += 1; }
__global__ void sumShared(int* value) {
  extern __shared__ int shared[];
  shared[threadIdx.x] = *value;
  __syncthreads();
  *value = shared[0];
}
__global__ void untouched(int* value) { *value -= 1; }

// Whether `call` writes at most `most` units to the ring.
template <typename Call>
bool crosses(Crossings& crossings, const char* what, uint64_t most, Call call) {
  crossings.restart();
  call();
  const uint64_t found = crossings.units();
  if (found > most)
    std::fprintf(stderr, "%s: %d units of frames, wanted at most %d\n", what, static_cast<int>(found), static_cast<int>(most));
  return found <= most;
}

constexpr uint64_t nothing = 0, oneQuery = 1, oneLookUp = 2;
// One frame with all block sizes of a kernel; one frame for each size would be 32.
constexpr uint64_t oneTable = 8;

bool launchesFindTheirKernelOnce(Crossings& crossings, int* value) {
  crossings.restart();
  warmUp<<<1, 1>>>(value);
  const uint64_t launch = crossings.units();
  bool ok = crosses(crossings, "a kernel's first launch", launch + oneLookUp, [&] { addOne<<<1, 1>>>(value); });
  ok &= crosses(crossings, "its second launch", launch, [&] { addOne<<<1, 1>>>(value); });
  CHECK(cudaGetLastError());
  return ok;
}

bool attributesCrossOnce(Crossings& crossings) {
  cudaFuncAttributes first{}, again{};
  bool ok = crosses(crossings, "attributes of a kernel never used", oneLookUp,
                    [&] { CHECK(cudaFuncGetAttributes(&first, untouched)); });
  ok &= crosses(crossings, "attributes asked again", nothing, [&] { CHECK(cudaFuncGetAttributes(&again, untouched)); });
  ok &= EXPECT(first.maxThreadsPerBlock > 0 && first.maxThreadsPerBlock == again.maxThreadsPerBlock);
  ok &= EXPECT(first.numRegs == again.numRegs && first.binaryVersion == again.binaryVersion);
  ok &= EXPECT(first.maxDynamicSharedSizeBytes == again.maxDynamicSharedSizeBytes);
  return ok;
}

bool changedAttributesAreAskedAgain(Crossings& crossings) {
  const int wanted = 16 * 1024;
  cudaFuncAttributes found{};
  CHECK(cudaFuncSetAttribute(sumShared, cudaFuncAttributeMaxDynamicSharedMemorySize, wanted));
  bool ok = crosses(crossings, "attributes after a change", oneQuery, [&] { CHECK(cudaFuncGetAttributes(&found, sumShared)); });
  ok &= EXPECT(found.maxDynamicSharedSizeBytes == wanted);
  ok &= crosses(crossings, "attributes asked again after a change", nothing,
                [&] { CHECK(cudaFuncGetAttributes(&found, sumShared)); });
  CHECK(cudaFuncSetCacheConfig(sumShared, cudaFuncCachePreferShared));
  ok &= crosses(crossings, "attributes after a cache configuration", oneQuery,
                [&] { CHECK(cudaFuncGetAttributes(&found, sumShared)); });
  return ok & EXPECT(found.maxDynamicSharedSizeBytes == wanted);
}

struct SharedFor {
  __host__ __device__ size_t operator()(int blockSize) const { return blockSize * sizeof(int); }
};

bool occupancyCrossesOnce(Crossings& crossings) {
  int grid = 0, block = 0, gridAgain = 0, blockAgain = 0, blocks = 0, plain = 0;
  bool ok = crosses(crossings, "the best block size", oneTable,
                    [&] { CHECK(cudaOccupancyMaxPotentialBlockSize(&grid, &block, addOne, 0, 0)); });
  ok &= crosses(crossings, "the best block size, again", nothing,
                  [&] { CHECK(cudaOccupancyMaxPotentialBlockSize(&gridAgain, &blockAgain, addOne, 0, 0)); });
  ok &= EXPECT(grid > 0 && block > 0 && grid == gridAgain && block == blockAgain);
  ok &= crosses(crossings, "occupancy of that block size", nothing, [&] {
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, addOne, block, 0));
  });
  // The value that the search returned equals the driver's for that one size.
  CHECK(cudaFuncSetCacheConfig(addOne, cudaFuncCachePreferNone));
  CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&plain, addOne, block, 0));
  ok &= EXPECT(blocks > 0 && blocks == plain);

  CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &block, sumShared, SharedFor()));
  ok &= crosses(crossings, "the best block size with varying shared memory, again", nothing, [&] {
    CHECK(cudaOccupancyMaxPotentialBlockSizeVariableSMem(&gridAgain, &blockAgain, sumShared, SharedFor()));
  });
  ok &= EXPECT(grid == gridAgain && block == blockAgain);
  size_t shared = 0, sharedAgain = 0;
  CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&shared, sumShared, 1, 64));
  ok &= crosses(crossings, "available shared memory, again", nothing,
                  [&] { CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&sharedAgain, sumShared, 1, 64)); });
  return ok & EXPECT(shared > 0 && shared == sharedAgain);
}

// Calls `ask` twice: the second time the client knows the result, and it is the same.
template <typename Value, typename Ask>
bool asksOnce(Crossings& crossings, const char* what, Ask ask) {
  Value first{}, again{};
  ask(&first);
  const bool ok = crosses(crossings, what, nothing, [&] { ask(&again); });
  return ok & EXPECT(std::memcmp(&first, &again, sizeof first) == 0);
}

bool settingsOfTheDeviceCrossOnce(Crossings& crossings) {
  const auto heap = [](size_t* bytes) { CALL(cuCtxGetLimit, bytes, CU_LIMIT_MALLOC_HEAP_SIZE); };
  const auto cache = [](CUfunc_cache* config) { CALL(cuCtxGetCacheConfig, config); };
  bool ok = asksOnce<size_t>(crossings, "a limit asked again", heap);
  ok &= asksOnce<CUfunc_cache>(crossings, "the cache configuration asked again", cache);
  size_t bytes = 0;
  heap(&bytes);
  CALL(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, 2 * bytes);
  size_t enlarged = 0;
  heap(&enlarged);
  ok &= EXPECT(enlarged >= 2 * bytes);
  CALL(cuCtxSetLimit, CU_LIMIT_MALLOC_HEAP_SIZE, bytes);
  CALL(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_L1);
  CUfunc_cache config = CU_FUNC_CACHE_PREFER_NONE;
  cache(&config);
  CALL(cuCtxSetCacheConfig, CU_FUNC_CACHE_PREFER_NONE);
  return ok & EXPECT(config == CU_FUNC_CACHE_PREFER_L1);
}

bool attributesOfAStreamCrossOnce(Crossings& crossings) {
  CUstream stream, other;
  CALL(cuStreamCreate, &stream, CU_STREAM_NON_BLOCKING);
  CALL(cuStreamCreate, &other, CU_STREAM_NON_BLOCKING);
  const auto policyOf = [](CUstream of) {
    return [=](CUstreamAttrValue* value) { CALL(cuStreamGetAttribute, of, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, value); };
  };
  bool ok = asksOnce<CUstreamAttrValue>(crossings, "a stream's attribute asked again", policyOf(stream));
  ok &= asksOnce<CUstreamAttrValue>(crossings, "the default stream's attribute asked again", policyOf(nullptr));
  CUstreamAttrValue value{}, found{};
  value.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
  policyOf(other)(&found);
  CALL(cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &value);
  policyOf(stream)(&found);
  ok &= EXPECT(found.syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC);
  policyOf(other)(&found);
  ok &= EXPECT(found.syncPolicy != CU_SYNC_POLICY_BLOCKING_SYNC);
  CALL(cuStreamCopyAttributes, other, stream);
  policyOf(other)(&found);
  ok &= EXPECT(found.syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC);
  CALL(cuStreamDestroy, stream);
  CALL(cuStreamDestroy, other);
  return ok;
}

// Frameworks encode a tensor map for each launch.
bool tensorMapsAreEncodedOnce(Crossings& crossings) {
  int hasMaps = 0;
  CALL(cuDeviceGetAttribute, &hasMaps, CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED, 0);
  if (hasMaps == 0) return true;
  DeviceArray<float> tensor(64 * 32);
  const cuuint64_t sizes[] = {64, 32}, pitch = 64 * sizeof(float);
  const cuuint32_t box[] = {16, 8}, other[] = {8, 8}, steps[] = {1, 1};
  const auto encode = [&](const cuuint32_t* boxOf) {
    return [&, boxOf](CUtensorMap* map) {
      CALL(cuTensorMapEncodeTiled, map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 2, static_cast<float*>(tensor), sizes, &pitch, boxOf, steps,
           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    };
  };
  bool ok = asksOnce<CUtensorMap>(crossings, "a tensor map encoded again", encode(box));
  CUtensorMap one, two;
  encode(box)(&one);
  encode(other)(&two);
  return ok & EXPECT(std::memcmp(&one, &two, sizeof one) != 0);
}

bool listsAreAskedOnce(Crossings& crossings) {
  struct Capabilities {
    unsigned of[2];
  };
  const CUatomicOperation operations[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_EXCHANGE};
  return asksOnce<Capabilities>(crossings, "atomics with the host, again", [&](Capabilities* capabilities) {
    CALL(cuDeviceGetHostAtomicCapabilities, capabilities->of, operations, 2, 0);
  });
}

bool referencesAreAskedAgainAfterAChange(Crossings& crossings) {
  struct Format {
    CUarray_format format;
    int channels;
  };
  CUtexref reference;
  CALL(cuTexRefCreate, &reference);
  const auto format = [&](Format* found) { CALL(cuTexRefGetFormat, &found->format, &found->channels, reference); };
  const auto flags = [&](unsigned* found) { CALL(cuTexRefGetFlags, found, reference); };
  bool ok = asksOnce<Format>(crossings, "a reference's format, again", format);
  ok &= asksOnce<unsigned>(crossings, "its flags, again", flags);
  CALL(cuTexRefSetFormat, reference, CU_AD_FORMAT_SIGNED_INT16, 2);
  CALL(cuTexRefSetFlags, reference, CU_TRSF_NORMALIZED_COORDINATES);
  Format changed{};
  unsigned normalized = 0;
  format(&changed);
  flags(&normalized);
  CALL(cuTexRefDestroy, reference);
  return ok & EXPECT(changed.format == CU_AD_FORMAT_SIGNED_INT16 && changed.channels == 2) &
         EXPECT((normalized & CU_TRSF_NORMALIZED_COORDINATES) != 0);
}

// A stream whose last operation is a record that another stream waited for is known to be complete.
bool aStreamUpToARecordIsKnown(Crossings& crossings) {
  DeviceArray<int> value(1);
  cudaStream_t first, second;
  cudaEvent_t event;
  CHECK(cudaStreamCreate(&first));
  CHECK(cudaStreamCreate(&second));
  CHECK(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
  warmUp<<<1, 1, 0, first>>>(value);
  CHECK(cudaEventRecord(event, first));
  CHECK(cudaStreamWaitEvent(second, event, 0));
  warmUp<<<1, 1, 0, second>>>(value);
  CHECK(cudaStreamSynchronize(second));
  const bool ok = crosses(crossings, "a stream that ends with a record which has happened", nothing, [&] {
    CHECK(cudaStreamQuery(first));
    CHECK(cudaStreamSynchronize(first));
  });
  CHECK(cudaEventDestroy(event));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
  return ok;
}

// An array that is neither sparse nor mapped later has no memory requirements and no sparse properties.
bool memoryOfArraysIsKnown(Crossings& crossings) {
  CUDA_ARRAY_DESCRIPTOR shape{64, 64, CU_AD_FORMAT_UNSIGNED_INT8, 4};
  CUarray array;
  CALL(cuArrayCreate, &array, &shape);
  CUDA_ARRAY_MEMORY_REQUIREMENTS requirements{};
  CUDA_ARRAY_SPARSE_PROPERTIES properties{};
  CUresult needed = CUDA_SUCCESS, sparse = CUDA_SUCCESS;
  bool ok = crosses(crossings, "an array's memory requirements", nothing, [&] {
    needed = DRIVER(cuArrayGetMemoryRequirements)(&requirements, array, 0);
    sparse = DRIVER(cuArrayGetSparseProperties)(&properties, array);
  });
  ok &= EXPECT(needed == CUDA_ERROR_INVALID_VALUE && sparse == CUDA_ERROR_INVALID_VALUE);
  CALL(cuArrayDestroy, array);
  return ok;
}

// Cached facts of a kernel end with its module: another module may have a kernel of that name.
bool unloadedKernelsAreForgotten(Crossings& crossings) {
  bool ok = true;
  for (int threads : {64, 128}) {
    const std::string image = ".version 7.5\n.target sm_75\n.address_size 64\n.visible .entry bounded() .maxntid " +
                              std::to_string(threads) + ", 1, 1\n{\n  ret;\n}\n";
    CUmodule module;
    CUfunction first, again;
    int found = 0;
    CALL(cuModuleLoadData, &module, image.c_str());
    CALL(cuModuleGetFunction, &first, module, "bounded");
    ok &= crosses(crossings, "a kernel looked up again", nothing, [&] { CALL(cuModuleGetFunction, &again, module, "bounded"); });
    CALL(cuFuncGetAttribute, &found, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, again);
    ok &= asksOnce<unsigned>(crossings, "the number of a module's kernels, again",
                             [&](unsigned* count) { CALL(cuModuleGetFunctionCount, count, module); });
    ok &= EXPECT(first == again && found == threads);
    CALL(cuModuleUnload, module);
  }
  return ok;
}

// 1 MiB in 4,096 rows, as of an image with margins.
bool rowsTravelTogether(Crossings& crossings) {
  const size_t width = 256, height = 4096, devicePitch = 512, hostPitch = 320, few = 64;
  DeviceArray<char> device(devicePitch * height);
  std::vector<char> in(hostPitch * height), out(hostPitch * height, 0);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<char>(i * 7);
  crossings.restart();
  CHECK(cudaMemcpy2D(device, devicePitch, in.data(), hostPitch, width, height, cudaMemcpyHostToDevice));
  bool ok = EXPECT(crossings.units() <= few);
  crossings.restart();
  CHECK(cudaMemcpy2D(out.data(), hostPitch, device, devicePitch, width, height, cudaMemcpyDeviceToHost));
  ok &= EXPECT(crossings.units() <= few);
  for (size_t i = 0; i < in.size(); ++i) {
    const char wanted = i % hostPitch < width ? in[i] : 0;
    if (out[i] != wanted) return EXPECT(out[i] == wanted);
  }
  return ok;
}

__global__ void count(int* values) { values[blockIdx.x * blockDim.x + threadIdx.x] += 1; }

// The host reads every second 64 KiB piece that a kernel has written, then the others.
bool memoryThatPrefersTheHostComesTogether(Crossings& crossings) {
  constexpr size_t numbers = 1 << 20, piece = 64 * 1024 / sizeof(int);
  int* values;
  CHECK(cudaMallocManaged(&values, numbers * sizeof(int)));
  int rounds = 0;
  bool ok = true;
  auto look = [&] {
    count<<<numbers / 256, 256>>>(values);
    CHECK(cudaDeviceSynchronize());
    ++rounds;
    crossings.restart();
    for (size_t first : {size_t{0}, piece})
      for (size_t i = first; i < numbers; i += 2 * piece) ok &= values[i] == rounds;
    return crossings.units();
  };
  look();  // which also looks up the kernel
  const uint64_t apart = look();
  CHECK(cudaMemAdvise(values, numbers * sizeof(int), cudaMemAdviseSetPreferredLocation, {cudaMemLocationTypeHost, 0}));
  const uint64_t together = look();
  CHECK(cudaMemAdvise(values, numbers * sizeof(int), cudaMemAdviseUnsetPreferredLocation, {cudaMemLocationTypeHost, 0}));
  const uint64_t apartAgain = look();
  ok &= EXPECT(4 * together <= apart) & EXPECT(4 * together <= apartAgain);
  CHECK(cudaFree(values));
  return EXPECT(ok);
}

// The GPU after the pause is another one, and is queried once.
bool answersOutliveThePause(Crossings& crossings) {
  cudaFuncAttributes before{}, after{};
  int blocksBefore = 0, blocksAfter = 0;
  const auto ask = [](cudaFuncAttributes& attributes, int& blocks) {
    CHECK(cudaFuncGetAttributes(&attributes, sumShared));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, sumShared, 64, 16 * 1024));
  };
  ask(before, blocksBefore);
  pausePoint();
  bool ok = crosses(crossings, "what is asked after the pause", oneQuery + oneTable, [&] { ask(after, blocksAfter); });
  ok &= crosses(crossings, "what is asked again after the pause", nothing, [&] { ask(after, blocksAfter); });
  ok &= EXPECT(before.numRegs == after.numRegs && before.maxThreadsPerBlock == after.maxThreadsPerBlock);
  ok &= EXPECT(before.maxDynamicSharedSizeBytes == after.maxDynamicSharedSizeBytes);  // set before the pause
  return ok & EXPECT(blocksBefore > 0 && blocksBefore == blocksAfter);
}

int main() {
  DeviceArray<int> value(1);
  warmUp<<<1, 1>>>(value);
  CHECK(cudaDeviceSynchronize());
  Crossings crossings;

  bool ok = launchesFindTheirKernelOnce(crossings, value);
  ok &= attributesCrossOnce(crossings);
  ok &= changedAttributesAreAskedAgain(crossings);
  ok &= occupancyCrossesOnce(crossings);
  ok &= settingsOfTheDeviceCrossOnce(crossings);
  ok &= attributesOfAStreamCrossOnce(crossings);
  ok &= aStreamUpToARecordIsKnown(crossings);
  ok &= memoryOfArraysIsKnown(crossings);
  ok &= tensorMapsAreEncodedOnce(crossings);
  ok &= listsAreAskedOnce(crossings);
  ok &= referencesAreAskedAgainAfterAChange(crossings);
  ok &= unloadedKernelsAreForgotten(crossings);
  ok &= answersOutliveThePause(crossings);
  ok &= rowsTravelTogether(crossings);
  ok &= memoryThatPrefersTheHostComesTogether(crossings);
  ok &= EXPECT(value.download()[0] == 3);
  return verdict("round-trips", ok);
}
