// Managed memory: allocation, advice, prefetch, attributes of ranges, attachment to streams.
#include "conformance.h"

__global__ void add(int* numbers, int count) {
  for (int i = threadIdx.x; i < count; i += blockDim.x) numbers[i] += i;
}

__managed__ int variable = 5;

static cudaMemLocation on(cudaMemLocationType type, int id = 0) {
  cudaMemLocation location{};
  location.type = type;
  location.id = id;
  return location;
}

SECTION(allocation) {
  void* memory = nullptr;
  CUdeviceptr address = 0;
  SAY(cudaMallocManaged(&memory, 0));
  VALUE(memory == nullptr);
  SAY(cudaMallocManaged(nullptr, 16));
  SAY(cudaMallocManaged(&memory, 16, 0));
  SAY(cudaMallocManaged(&memory, 16, 3));
  SAY(cudaMallocManaged(&memory, 16, cudaMemAttachSingle));
  SAY(cudaMallocManaged(&memory, size_t{1} << 60));
  SAYCU(cuMemAllocManaged, &address, 0, CU_MEM_ATTACH_GLOBAL);
  SAYCU(cuMemAllocManaged, &address, 16, 0);
  SAYCU(cuMemAllocManaged, &address, 16, CU_MEM_ATTACH_SINGLE);
  SAYCU(cuMemAllocManaged, &address, 16, CU_MEM_ATTACH_HOST);
  SAYCU(cuMemFree, address);
  SAYCU(cuMemFree, address);
  SAY(cudaMallocManaged(&memory, 1000, cudaMemAttachHost));
  SAY(cudaFreeHost(memory));
  SAY(cudaFree(static_cast<char*>(memory) + 1));
  SAY(cudaFree(memory));
  SAY(cudaFree(memory));
}

SECTION(values) {
  int* numbers = nullptr;
  CHECK(cudaMallocManaged(&numbers, 4096));
  for (int i = 0; i < 1024; ++i) numbers[i] = 1;
  add<<<1, 32>>>(numbers, 1024);
  SAY(cudaDeviceSynchronize());
  VALUE(numbers[1023]);
  variable = 7;
  add<<<1, 1>>>(&variable, 1);
  SAY(cudaDeviceSynchronize());
  VALUE(variable);
  int copied = 0;
  SAY(cudaMemcpy(&copied, numbers + 3, sizeof copied, cudaMemcpyDefault));
  VALUE(copied);
  SAY(cudaMemcpy(&copied, numbers + 4, sizeof copied, cudaMemcpyDeviceToHost));
  VALUE(copied);
  SAY(cudaMemcpy(numbers, &copied, sizeof copied, cudaMemcpyHostToHost));
  VALUE(numbers[0]);
  SAY(cudaMemset(numbers, 1, 8));
  SAY(cudaDeviceSynchronize());
  VALUE(numbers[1]);
  SAY(cudaMemcpy(&copied, numbers + 1024, sizeof copied, cudaMemcpyDefault));
}

SECTION(pointers) {
  char* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, 100));
  cudaPointerAttributes attributes{};
  for (void* pointer : {static_cast<void*>(memory), static_cast<void*>(memory + 50), static_cast<void*>(&variable)}) {
    SAY(cudaPointerGetAttributes(&attributes, pointer));
    VALUE(attributes.type);
    VALUE(attributes.device);
    VALUE(attributes.devicePointer == pointer);
    VALUE(attributes.hostPointer == pointer);
  }
  CUdeviceptr address = reinterpret_cast<CUdeviceptr>(memory), base = 0;
  size_t bytes = 0;
  SAYCU(cuMemGetAddressRange, &base, &bytes, address + 7);
  VALUE(base == address);
  VALUE(bytes);
  unsigned number = 77;
  SAYCU(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
  VALUE(number);
  SAYCU(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_MAPPED, address);
  VALUE(number);
  SAYCU(cuPointerGetAttribute, &number, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, address);
  VALUE(number);
  cudaIpcMemHandle_t handle;
  SAY(cudaIpcGetMemHandle(&handle, memory));
  void* other = nullptr;
  SAY(cudaHostRegister(memory, 100, 0));
  SAY(cudaHostGetDevicePointer(&other, memory, 0));
}

SECTION(advice) {
  char* memory = nullptr;
  const cudaMemLocation device = on(cudaMemLocationTypeDevice), host = on(cudaMemLocationTypeHost);
  CHECK(cudaMallocManaged(&memory, 1 << 20));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetReadMostly, device));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseUnsetReadMostly, device));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetPreferredLocation, device));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetPreferredLocation, host));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseUnsetPreferredLocation, device));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetAccessedBy, device));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetAccessedBy, host));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseUnsetAccessedBy, device));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetPreferredLocation, on(cudaMemLocationTypeDevice, 99)));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetAccessedBy, on(cudaMemLocationTypeDevice, 99)));
  SAY(cudaMemAdvise(memory, 1 << 20, cudaMemAdviseSetPreferredLocation, on(cudaMemLocationTypeInvalid)));
  SAY(cudaMemAdvise(memory, 1 << 20, static_cast<cudaMemoryAdvise>(77), device));
  SAY(cudaMemAdvise(memory, 0, cudaMemAdviseSetReadMostly, device));
  SAY(cudaMemAdvise(memory, (1 << 20) + (4 << 20), cudaMemAdviseSetReadMostly, device));
  SAY(cudaMemAdvise(memory + 5, 10, cudaMemAdviseSetReadMostly, device));
  SAY(cudaMemAdvise(nullptr, 4096, cudaMemAdviseSetReadMostly, device));
  void* plain = nullptr;
  CHECK(cudaMalloc(&plain, 4096));
  SAY(cudaMemAdvise(plain, 4096, cudaMemAdviseSetReadMostly, device));
}

SECTION(prefetch) {
  char* memory = nullptr;
  void* plain = nullptr;
  const cudaMemLocation device = on(cudaMemLocationTypeDevice), host = on(cudaMemLocationTypeHost);
  CHECK(cudaMallocManaged(&memory, 1 << 20));
  CHECK(cudaMalloc(&plain, 4096));
  SAY(cudaMemPrefetchAsync(memory, 1 << 20, device, 0, nullptr));
  SAY(cudaMemPrefetchAsync(memory, 1 << 20, host, 0, nullptr));
  SAY(cudaMemPrefetchAsync(memory + 3, 10, device, 0, nullptr));
  SAY(cudaMemPrefetchAsync(memory, 0, device, 0, nullptr));
  SAY(cudaMemPrefetchAsync(memory, 1 << 20, device, 1, nullptr));
  SAY(cudaMemPrefetchAsync(memory, 8 << 20, device, 0, nullptr));
  SAY(cudaMemPrefetchAsync(memory, 1 << 20, on(cudaMemLocationTypeDevice, 99), 0, nullptr));
  SAY(cudaMemPrefetchAsync(memory, 1 << 20, on(cudaMemLocationTypeInvalid), 0, nullptr));
  SAY(cudaMemPrefetchAsync(nullptr, 4096, device, 0, nullptr));
  SAY(cudaMemPrefetchAsync(plain, 4096, device, 0, nullptr));
  SAY(cudaDeviceSynchronize());
}

SECTION(ranges) {
  char* memory = nullptr;
  const size_t bytes = 4 << 20;
  const cudaMemLocation device = on(cudaMemLocationTypeDevice), host = on(cudaMemLocationTypeHost);
  CHECK(cudaMallocManaged(&memory, bytes));
  int value = 77, accessors[4] = {77, 77, 77, 77};
  auto all = [&] {
    SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, bytes));
    VALUE(value);
    SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributePreferredLocation, memory, bytes));
    VALUE(value);
    SAY(cudaMemRangeGetAttribute(accessors, sizeof accessors, cudaMemRangeAttributeAccessedBy, memory, bytes));
    VALUE(accessors[0]);
    VALUE(accessors[1]);
    VALUE(accessors[3]);
    SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeLastPrefetchLocation, memory, bytes));
    VALUE(value);
  };
  all();
  SAY(cudaMemAdvise(memory, bytes, cudaMemAdviseSetReadMostly, device));
  SAY(cudaMemAdvise(memory, bytes, cudaMemAdviseSetPreferredLocation, host));
  SAY(cudaMemAdvise(memory, bytes, cudaMemAdviseSetAccessedBy, device));
  SAY(cudaMemAdvise(memory, bytes, cudaMemAdviseSetAccessedBy, host));
  SAY(cudaMemPrefetchAsync(memory, bytes, device, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  all();
  SAY(cudaMemAdvise(memory, bytes / 2, cudaMemAdviseUnsetReadMostly, device));
  SAY(cudaMemAdvise(memory, bytes / 2, cudaMemAdviseSetPreferredLocation, device));
  SAY(cudaMemAdvise(memory, bytes / 2, cudaMemAdviseUnsetAccessedBy, device));
  SAY(cudaMemPrefetchAsync(memory, bytes / 2, host, 0, nullptr));
  CHECK(cudaDeviceSynchronize());
  all();
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, bytes / 2));
  VALUE(value);
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributePreferredLocation, memory + bytes / 2, bytes / 2));
  VALUE(value);
  SAY(cudaMemRangeGetAttribute(&value, 2, cudaMemRangeAttributeReadMostly, memory, bytes));
  SAY(cudaMemRangeGetAttribute(&value, 8, cudaMemRangeAttributeReadMostly, memory, bytes));
  SAY(cudaMemRangeGetAttribute(accessors, 6, cudaMemRangeAttributeAccessedBy, memory, bytes));
  SAY(cudaMemRangeGetAttribute(nullptr, sizeof value, cudaMemRangeAttributeReadMostly, memory, bytes));
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, static_cast<cudaMemRangeAttribute>(77), memory, bytes));
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, 0));
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, nullptr, bytes));
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, 4 * bytes));
  void* plain = nullptr;
  CHECK(cudaMalloc(&plain, 4096));
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, plain, 4096));
  void* data[2] = {&value, accessors};
  size_t sizes[2] = {sizeof value, sizeof accessors};
  cudaMemRangeAttribute wanted[2] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributeAccessedBy};
  SAY(cudaMemRangeGetAttributes(data, sizes, wanted, 2, memory, bytes));
  VALUE(value);
  SAY(cudaMemRangeGetAttributes(data, sizes, wanted, 0, memory, bytes));
  SAY(cudaMemRangeGetAttributes(nullptr, sizes, wanted, 2, memory, bytes));
  CHECK(cudaFree(memory));
  SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, bytes));
}

static cudaStream_t newStream() {
  cudaStream_t stream = nullptr;
  CHECK(cudaStreamCreate(&stream));
  return stream;
}

static char* newPage() {
  char* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, 4096));
  return memory;
}

SECTION(attachment) {
  char* memory = newPage();
  const cudaStream_t stream = newStream();
  SAY(cudaStreamAttachMemAsync(stream, memory, 0, cudaMemAttachSingle));
  SAY(cudaStreamAttachMemAsync(stream, memory, 4096, cudaMemAttachGlobal));
  SAY(cudaStreamAttachMemAsync(stream, memory, 100, cudaMemAttachHost));
  SAY(cudaStreamAttachMemAsync(stream, memory + 8, 0, cudaMemAttachHost));
  SAY(cudaStreamSynchronize(stream));
}

// Each in its own process: the driver crashes for flags of 0, and may for others.
SECTION(attachmentOfTwoKinds) {
  char* memory = newPage();
  const cudaStream_t stream = newStream();
  SAY(cudaStreamAttachMemAsync(stream, memory, 0, 3));
}

SECTION(attachmentOfNoKind) {
  char* memory = newPage();
  const cudaStream_t stream = newStream();
  SAY(cudaStreamAttachMemAsync(stream, memory, 0, 8));
}

SECTION(attachmentToDefault) {
  char* memory = newPage();
  SAY(cudaStreamAttachMemAsync(nullptr, memory, 0, cudaMemAttachGlobal));
  SAY(cudaStreamAttachMemAsync(nullptr, memory, 0, cudaMemAttachSingle));
}

SECTION(attachmentOfNull) {
  const cudaStream_t stream = newStream();
  SAY(cudaStreamAttachMemAsync(stream, nullptr, 0, cudaMemAttachGlobal));
}

SECTION(attachmentOfPlain) {
  void* plain = nullptr;
  const cudaStream_t stream = newStream();
  CHECK(cudaMalloc(&plain, 4096));
  SAY(cudaStreamAttachMemAsync(stream, plain, 0, cudaMemAttachGlobal));
}
