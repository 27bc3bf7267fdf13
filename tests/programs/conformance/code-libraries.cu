// Code libraries by the runtime: loading, kernels, variables, and launches of such kernels.
#include <string>

#include "numbers.h"

__device__ int variable = 1;

static const char* const text = R"(.version 7.5
.target sm_75
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .global .align 4 .b8 bytes[12] = {1, 2, 3};
.visible .const .align 4 .u32 fixed = 6;
.visible .global .attribute(.managed) .align 4 .u32 shared = 7;
.visible .func (.param .u32 out) helper(.param .u32 in)
{
  .reg .b32 %r;
  ld.param.u32 %r, [in];
  st.param.u32 [out], %r;
  ret;
}
.visible .entry nothing()
{
  ret;
}
.visible .entry add(.param .u64 to, .param .u32 by)
{
  .reg .b32 %by, %value, %sum;
  .reg .b64 %to;
  ld.param.u64 %to, [to];
  ld.param.u32 %by, [by];
  cvta.to.global.u64 %to, %to;
  ld.global.u32 %value, [counter];
  add.u32 %sum, %value, %by;
  ld.const.u32 %value, [fixed];
  mad.lo.u32 %sum, %value, 1000, %sum;
  st.global.u32 [%to], %sum;
  ld.global.u32 %value, [shared];
  add.u32 %value, %value, %by;
  st.global.u32 [shared], %value;
  ret;
}
)";
static const char* const wrong = ".version 7.5\n.target sm_75\n.address_size 64\nnonsense";
static const char* const empty = ".version 7.5\n.target sm_75\n.address_size 64\n";

namespace {

cudaLibrary_t library;
cudaKernel_t kernel;
cudaStream_t stream;
unsigned* words;

cudaError_t loadText(cudaLibrary_t* into, const char* image) {
  return cudaLibraryLoadData(into, image, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

void setUp() {
  CHECK(loadText(&library, text));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&words, 64));
  CHECK(cudaMemset(words, 0, 64));
  CHECK(cudaDeviceSynchronize());
}

unsigned wordAt(const void* place) {
  unsigned value = 0;
  CHECK(cudaMemcpy(&value, place, sizeof value, cudaMemcpyDefault));
  return value;
}

cudaError_t launch(cudaKernel_t one, unsigned by, unsigned threads = 1) {
  void* arguments[] = {&words, &by};
  return cudaLaunchKernel(reinterpret_cast<const void*>(one), dim3(1), dim3(threads), arguments, 0, stream);
}

}  // namespace

SECTION(loading) {
  SAY(loadText(&library, ""));
  SAY(loadText(&library, "nonsense"));
  SAY(loadText(&library, ".version 99.0\n.target sm_75\n.address_size 64\n"));
  SAY(loadText(&library, ".version 7.5\n.target sm_999\n.address_size 64\n"));
  SAY(loadText(&library, wrong));
  SAY(loadText(&library, empty));
  unsigned count = 9;
  SAY(cudaLibraryGetKernelCount(&count, library));
  VALUE(count);
  SAY(cudaLibraryUnload(library));
  SAY(loadText(&library, text));
  cudaLibrary_t again = nullptr;
  SAY(loadText(&again, text));
  VALUE(again != library);
  SAY(cudaLibraryUnload(again));
  SAY(cudaLibraryGetKernelCount(&count, library));
  VALUE(count);
  SAY(cudaLibraryUnload(library));
  SAY(cudaGetLastError());
}

// An image that cannot be compiled, when it is used.
SECTION(broken) {
  for (const char* image : {"", "nonsense", ".version 99.0\n.target sm_75\n.address_size 64\n",
                            ".version 7.5\n.target sm_999\n.address_size 64\n", wrong}) {
    CHECK(loadText(&library, image));
    unsigned count = 9;
    cudaKernel_t kernels[2]{};
    CUmodule module = nullptr;
    void* address = nullptr;
    size_t bytes = 0;
    SAY(cudaLibraryGetKernelCount(&count, library));
    VALUE(count);
    SAY(cudaLibraryGetKernel(&kernel, library, "add"));
    SAY(cudaLibraryEnumerateKernels(kernels, 2, library));
    SAY(cudaLibraryGetGlobal(&address, &bytes, library, "counter"));
    SAY(cudaLibraryGetManaged(&address, &bytes, library, "shared"));
    SAY(cudaLibraryGetUnifiedFunction(&address, library, "helper"));
    SAYCU(cuLibraryGetModule, &module, reinterpret_cast<CUlibrary>(library));
    SAY(cudaGetLastError());
    SAY(cudaLibraryUnload(library));
  }
}

// Whether the log reports it, and when.
SECTION(brokenLog) {
  static char log[4096];
  cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  SAY(cudaLibraryLoadData(&library, wrong, options, values, 2, nullptr, nullptr, 0));
  VALUE(log[0] != 0);
  SAY(cudaLibraryGetKernel(&kernel, library, "add"));
  VALUE(log[0] != 0);
  SAY(cudaLibraryUnload(library));
}

SECTION(files) {
  char path[] = "/tmp/vgpu-conformance-XXXXXX";
  int file = mkstemp(path);
  auto put = [&](const char* content, size_t bytes) {
    CHECK(ftruncate(file, 0) == 0 && pwrite(file, content, bytes, 0) == static_cast<ssize_t>(bytes) ? cudaSuccess
                                                                                                    : cudaErrorUnknown);
  };
  auto load = [&](const char* name) { return cudaLibraryLoadFromFile(&library, name, nullptr, nullptr, 0, nullptr, nullptr, 0); };
  SAY(load("/nowhere/at-all"));
  SAY(load(""));
  SAY(load("/"));
  SAY(load(path));  // the file is empty
  put("nonsense", 8);
  SAY(load(path));
  put(text, std::strlen(text));  // without a final zero
  SAY(load(path));
  CHECK(unlink(path) == 0 ? cudaSuccess : cudaErrorUnknown);
  SAY(cudaLibraryGetKernel(&kernel, library, "nothing"));
  SAY(launch(kernel, 1));
  SAY(cudaDeviceSynchronize());
  SAY(cudaLibraryUnload(library));
  SAY(load(path));
}

SECTION(options) {
  CHECK(cudaFree(nullptr));
  char information[1024] = {}, errors[1024] = {};
  auto number = [](size_t value) { return reinterpret_cast<void*>(value); };
  cudaJitOption names[] = {cudaJitInfoLogBuffer,           cudaJitInfoLogBufferSizeBytes, cudaJitErrorLogBuffer,
                           cudaJitErrorLogBufferSizeBytes, cudaJitOptimizationLevel,      cudaJitMaxRegisters};
  void* values[] = {information, number(sizeof information), errors, number(sizeof errors), number(4), number(32)};
  SAY(cudaLibraryLoadData(&library, text, names, values, 6, nullptr, nullptr, 0));
  SAY(cudaLibraryGetKernel(&kernel, library, "nothing"));
  VALUE(errors[0]);
  SAY(cudaLibraryUnload(library));
  cudaJitOption wrong[] = {static_cast<cudaJitOption>(99)};
  SAY(cudaLibraryLoadData(&library, text, wrong, values, 1, nullptr, nullptr, 0));
  wrong[0] = static_cast<cudaJitOption>(-1);
  SAY(cudaLibraryLoadData(&library, text, wrong, values, 1, nullptr, nullptr, 0));
  cudaJitOption level[] = {cudaJitOptimizationLevel};
  for (size_t value : {0, 5, 77}) {
    void* levels[] = {number(value)};
    VALUE(value);
    SAY(cudaLibraryLoadData(&library, text, level, levels, 1, nullptr, nullptr, 0));
  }
  cudaLibraryOption kept[] = {cudaLibraryBinaryIsPreserved};
  for (size_t value : {0, 1}) {
    void* flags[] = {number(value)};
    SAY(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, kept, flags, 1));
  }
  SAY(cudaLibraryGetKernel(&kernel, library, "nothing"));
  SAY(launch(kernel, 1));
  SAY(cudaDeviceSynchronize());
  void* one[] = {number(1)};
  for (int which : {2, 99, -1}) {
    cudaLibraryOption other[] = {static_cast<cudaLibraryOption>(which)};
    VALUE(which);
    SAY(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, other, one, 1));
  }
  cudaLibraryOption twice[] = {cudaLibraryBinaryIsPreserved, cudaLibraryBinaryIsPreserved};
  void* both[] = {number(1), number(1)};
  SAY(cudaLibraryLoadData(&library, text, nullptr, nullptr, 0, twice, both, 2));
  SAY(cudaGetLastError());
}

SECTION(kernels) {
  setUp();
  unsigned count = 9;
  SAY(cudaLibraryGetKernelCount(&count, library));
  VALUE(count);
  cudaKernel_t all[4] = {}, one[2] = {}, none[1] = {};
  SAY(cudaLibraryEnumerateKernels(all, 4, library));
  SAY(cudaLibraryEnumerateKernels(one, 1, library));
  SAY(cudaLibraryEnumerateKernels(none, 0, library));
  sayNumbers("kernels found of four, one, none", {(all[0] != nullptr) + (all[1] != nullptr) + (all[2] != nullptr),
                                                  (one[0] != nullptr) + (one[1] != nullptr), none[0] != nullptr});
  VALUE(one[0] == all[0]);
  SAY(cudaLibraryGetKernel(&kernel, library, "absent"));
  SAY(cudaLibraryGetKernel(&kernel, library, ""));
  SAY(cudaLibraryGetKernel(&kernel, library, "helper"));
  SAY(cudaLibraryGetKernel(&kernel, library, "counter"));
  SAY(cudaLibraryGetKernel(&kernel, library, "add"));
  cudaKernel_t again = nullptr;
  SAY(cudaLibraryGetKernel(&again, library, "add"));
  VALUE(again == kernel);
  VALUE((kernel == all[0]) + (kernel == all[1]));
  const char* name = nullptr;
  SAY(cudaFuncGetName(&name, kernel));
  VALUE(name != nullptr && std::strcmp(name, "add") == 0);
  size_t offset = 77, size = 77;
  SAY(cudaFuncGetParamInfo(kernel, 0, &offset, &size));
  sayNumbers("offset, size", {offset, size});
  SAY(cudaFuncGetParamInfo(kernel, 1, &offset, &size));
  sayNumbers("offset, size", {offset, size});
  SAY(cudaFuncGetParamInfo(kernel, 2, &offset, &size));
  SAY(launch(kernel, 10));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
  SAY(launch(kernel, 10, 0));
  SAY(launch(kernel, 10, 2048));
  unsigned by = 20;
  void* arguments[] = {&words, &by};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  config.stream = stream;
  SAY(cudaLaunchKernelExC(&config, reinterpret_cast<const void*>(kernel), arguments));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
  SAY(cudaGetLastError());
}

SECTION(attributesOfKernels) {
  setUp();
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  cudaFuncAttributes attributes{};
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  sayNumbers("shared, constant, dynamic shared, cluster", {attributes.sharedSizeBytes, attributes.constSizeBytes,
                                                           attributes.maxDynamicSharedSizeBytes, attributes.clusterDimMustBeSet});
  auto set = [](int attribute, int value, int device = 0) {
    return cudaKernelSetAttributeForDevice(kernel, static_cast<cudaFuncAttribute>(attribute), value, device);
  };
  SAY(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 2048));
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  VALUE(attributes.maxDynamicSharedSizeBytes);
  SAY(set(cudaFuncAttributeMaxDynamicSharedMemorySize, -2));
  SAY(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 24));
  SAY(set(cudaFuncAttributePreferredSharedMemoryCarveout, 50));
  SAY(set(cudaFuncAttributePreferredSharedMemoryCarveout, 101));
  SAY(set(cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  SAY(set(77, 1));
  SAY(set(-1, 1));
  SAY(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 99));
  SAY(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, -1));
  SAY(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 4096));
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  VALUE(attributes.maxDynamicSharedSizeBytes);
  SAY(set(cudaFuncAttributeMaxDynamicSharedMemorySize, 1024));
  SAY(cudaFuncGetAttributes(&attributes, kernel));
  VALUE(attributes.maxDynamicSharedSizeBytes);
  SAY(cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1));
  int blocks = 0;
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 1024, 0));
  VALUE(blocks);
  SAY(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, kernel, 512, 0, cudaOccupancyDisableCachingOverride));
  VALUE(blocks);
  cudaKernel_t own = nullptr;
  SAY(cudaGetKernel(&own, kernel));
  VALUE(own == kernel);
}

SECTION(variables) {
  setUp();
  void* address = nullptr;
  size_t bytes = 0;
  SAY(cudaLibraryGetGlobal(&address, &bytes, library, "absent"));
  SAY(cudaLibraryGetGlobal(&address, &bytes, library, ""));
  SAY(cudaLibraryGetGlobal(&address, &bytes, library, "add"));
  SAY(cudaLibraryGetGlobal(&address, &bytes, library, "bytes"));
  VALUE(bytes);
  ARRAY(static_cast<const char*>(address), 12);
  SAY(cudaLibraryGetGlobal(&address, &bytes, library, "fixed"));
  VALUE(bytes);
  VALUE(wordAt(address));
  SAY(cudaLibraryGetGlobal(nullptr, &bytes, library, "bytes"));
  VALUE(bytes);
  SAY(cudaLibraryGetGlobal(&address, nullptr, library, "counter"));
  VALUE(wordAt(address));
  void* again = nullptr;
  SAY(cudaLibraryGetGlobal(&again, nullptr, library, "counter"));
  VALUE(again == address);
  unsigned value = 50;
  SAY(cudaMemcpy(address, &value, sizeof value, cudaMemcpyHostToDevice));
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  SAY(launch(kernel, 1));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
  cudaPointerAttributes attributes{};
  SAY(cudaPointerGetAttributes(&attributes, address));
  VALUE(attributes.type);
  // Its address is not a symbol.
  SAY(cudaMemcpyToSymbol(address, &value, sizeof value));
  SAY(cudaGetSymbolAddress(&again, address));
  SAY(cudaGetSymbolSize(&bytes, address));
  // Each library has its own variable.
  cudaLibrary_t other = nullptr;
  CHECK(loadText(&other, text));
  SAY(cudaLibraryGetGlobal(&again, &bytes, other, "counter"));
  VALUE(again == address);
  VALUE(wordAt(again));
  SAY(cudaGetLastError());
}

SECTION(managedVariables) {
  setUp();
  void* address = nullptr;
  size_t bytes = 77;
  SAY(cudaLibraryGetManaged(&address, &bytes, library, "absent"));
  SAY(cudaLibraryGetManaged(&address, &bytes, library, ""));
  SAY(cudaLibraryGetManaged(&address, &bytes, library, "counter"));
  SAY(cudaLibraryGetManaged(&address, &bytes, library, "add"));
  VALUE(bytes);
  SAY(cudaLibraryGetManaged(&address, &bytes, library, "shared"));
  VALUE(bytes);
  auto* shared = static_cast<volatile unsigned*>(address);
  VALUE(*shared);
  *shared = 70;
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  SAY(launch(kernel, 3));
  SAY(cudaStreamSynchronize(stream));
  VALUE(*shared);
  SAY(cudaLibraryGetManaged(nullptr, &bytes, library, "shared"));
  VALUE(bytes);
  void* again = nullptr;
  SAY(cudaLibraryGetManaged(&again, nullptr, library, "shared"));
  VALUE(again == address);
  cudaPointerAttributes attributes{};
  SAY(cudaPointerGetAttributes(&attributes, address));
  VALUE(attributes.type);
  SAY(cudaLibraryGetGlobal(&again, &bytes, library, "shared"));
  SAY(cudaGetLastError());
}

SECTION(unifiedFunctions) {
  setUp();
  void* function = nullptr;
  SAY(cudaLibraryGetUnifiedFunction(&function, library, "absent"));
  SAY(cudaLibraryGetUnifiedFunction(&function, library, "helper"));
  SAY(cudaLibraryGetUnifiedFunction(&function, library, "add"));
  SAY(cudaLibraryGetUnifiedFunction(&function, library, ""));
  VALUE(function != nullptr);
}

SECTION(graphs) {
  setUp();
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  cudaGraphExec_t executable = nullptr;
  unsigned by = 30;
  void* arguments[] = {&words, &by};
  CHECK(cudaGraphCreate(&graph, 0));
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  cudaKernelNodeParams parameters{}, got{};
  parameters.func = kernel;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(1);
  parameters.kernelParams = arguments;
  SAY(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
  SAY(cudaGraphKernelNodeGetParams(node, &got));
  VALUE(got.func == kernel);
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
  by = 40;
  SAY(cudaGraphExecKernelNodeSetParams(executable, node, &parameters));
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
}

SECTION(captured) {
  cudaGraph_t graph = nullptr;
  size_t nodes = 9;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&words, 64));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  SAY(loadText(&library, text));
  SAY(cudaLibraryGetKernel(&kernel, library, "add"));
  SAY(launch(kernel, 1));
  SAY(cudaStreamEndCapture(stream, &graph));
  if (graph == nullptr) return;
  SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
  VALUE(nodes);
}

SECTION(unloading) {
  setUp();
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  SAY(launch(kernel, 2));
  SAY(cudaLibraryUnload(library));  // with pending work
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
  SAY(loadText(&library, text));
  SAY(cudaLibraryGetKernel(&kernel, library, "add"));
  SAY(launch(kernel, 3));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
}

// Libraries belong to the process, and exist again after a reset.
SECTION(afterReset) {
  setUp();
  void* address = nullptr;
  size_t bytes = 0;
  CHECK(cudaLibraryGetKernel(&kernel, library, "add"));
  SAY(launch(kernel, 2));
  SAY(cudaDeviceReset());
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaMalloc(&words, 64));
  CHECK(cudaMemset(words, 0, 64));
  CHECK(cudaDeviceSynchronize());
  SAY(launch(kernel, 3));
  SAY(cudaStreamSynchronize(stream));
  VALUE(wordAt(words));
  SAY(cudaLibraryGetGlobal(&address, &bytes, library, "counter"));
  SAY(cudaLibraryUnload(library));
}

// Null for a required pointer: one per section, because the driver may crash.
#define NOTHING(name, call)                 \
  SECTION(name) {                           \
    setUp();                                \
    [[maybe_unused]] void* place = nullptr; \
    SAY(call);                              \
  }

NOTHING(nothingLoaded, cudaLibraryLoadData(nullptr, text, nullptr, nullptr, 0, nullptr, nullptr, 0))
NOTHING(nothingImage, cudaLibraryLoadData(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0))
NOTHING(nothingFile, cudaLibraryLoadFromFile(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0))
NOTHING(nothingOfFile, cudaLibraryLoadFromFile(nullptr, "/nowhere/at-all", nullptr, nullptr, 0, nullptr, nullptr, 0))
NOTHING(nothingOptions, cudaLibraryLoadData(&library, text, nullptr, nullptr, 1, nullptr, nullptr, 0))
NOTHING(nothingKernel, cudaLibraryGetKernel(nullptr, library, "add"))
NOTHING(nothingKernelName, cudaLibraryGetKernel(&kernel, library, nullptr))
NOTHING(nothingKernelOf, cudaLibraryGetKernel(&kernel, nullptr, "add"))
NOTHING(nothingCount, cudaLibraryGetKernelCount(nullptr, library))
NOTHING(nothingCountOf, cudaLibraryGetKernelCount(words, nullptr))
NOTHING(nothingKernels, cudaLibraryEnumerateKernels(nullptr, 2, library))
NOTHING(nothingKernelsOf, cudaLibraryEnumerateKernels(&kernel, 1, nullptr))
NOTHING(nothingGlobal, cudaLibraryGetGlobal(nullptr, nullptr, library, "counter"))
NOTHING(nothingGlobalName, cudaLibraryGetGlobal(&place, nullptr, library, nullptr))
NOTHING(nothingGlobalOf, cudaLibraryGetGlobal(&place, nullptr, nullptr, "counter"))
NOTHING(nothingManaged, cudaLibraryGetManaged(nullptr, nullptr, library, "shared"))
NOTHING(nothingManagedName, cudaLibraryGetManaged(&place, nullptr, library, nullptr))
NOTHING(nothingManagedOf, cudaLibraryGetManaged(&place, nullptr, nullptr, "shared"))
NOTHING(nothingUnified, cudaLibraryGetUnifiedFunction(nullptr, library, "helper"))
NOTHING(nothingUnifiedName, cudaLibraryGetUnifiedFunction(&place, library, nullptr))
NOTHING(nothingUnifiedOf, cudaLibraryGetUnifiedFunction(&place, nullptr, "helper"))
NOTHING(nothingUnloaded, cudaLibraryUnload(nullptr))
NOTHING(nothingAttribute, cudaKernelSetAttributeForDevice(nullptr, cudaFuncAttributeMaxDynamicSharedMemorySize, 1024, 0))
