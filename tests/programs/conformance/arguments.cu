// Which of several wrong arguments a runtime function checks first, and which it ignores.
#include "conformance.h"

__device__ int variable[4];

SECTION(devices) {
  int devices[] = {0, 99, 0};
  SAY(cudaSetValidDevices(nullptr, 1));
  SAY(cudaSetValidDevices(devices, 64));
  SAY(cudaSetValidDevices(devices + 1, 1));
  SAY(cudaSetValidDevices(devices, -1));
  SAY(cudaSetValidDevices(nullptr, 0));
  SAY(cudaInitDevice(0, 0, 2));
  SAY(cudaInitDevice(99, 0, 2));
  SAY(cudaInitDevice(0, 0xff00, 1));
  SAY(cudaInitDevice(0, 0xff00, 0));
  SAY(cudaInitDevice(99, 0xff00, 1));
  SAY(cudaInitDevice(0, 3, 1));
  for (unsigned flags : {1, 2, 3, 4, 5, 6, 7, 9, 16, 24, 256}) SAY(cudaSetDeviceFlags(flags));
  size_t bytes = 0;
  SAY(cudaMemGetInfo(nullptr, &bytes));
  SAY(cudaMemGetInfo(&bytes, nullptr));
}

SECTION(symbols) {
  int host = 0, node = 0;
  for (int kind : {0, 1, 2, 9})
    for (size_t bytes : {0, 4, 17}) {
      SAY(cudaMemcpyToSymbol(variable, &host, bytes, 0, cudaMemcpyKind(kind)));
      SAY(cudaMemcpyFromSymbol(&host, variable, bytes, 20, cudaMemcpyKind(kind)));
      SAY(cudaMemcpyToSymbol(node, &host, bytes, 0, cudaMemcpyKind(kind)));
    }
  cudaGraph_t graph;
  cudaGraphNode_t made;
  CHECK(cudaGraphCreate(&graph, 0));
  SAY(cudaGraphAddMemcpyNodeToSymbol(&made, graph, nullptr, 0, &host, &host, 4, 0, cudaMemcpyDeviceToHost));
  SAY(cudaGraphAddMemcpyNodeFromSymbol(&made, graph, nullptr, 0, &host, variable, 4, 20, cudaMemcpyHostToDevice));
}

SECTION(copies) {
  int host[64], *device = nullptr;
  CHECK(cudaMalloc(&device, sizeof host));
  for (int kind : {1, 9})
    for (size_t bytes : {0, 4}) {
      SAY(cudaMemcpy(device, host, bytes, cudaMemcpyKind(kind)));
      SAY(cudaMemcpyAsync(nullptr, nullptr, bytes, cudaMemcpyKind(kind), nullptr));
      SAY(cudaMemcpyPeer(device, 99, device, 0, bytes));
      for (size_t rows : {0, 1, 2}) SAY(cudaMemcpy2D(device, 4, host, 4, 2 * bytes, rows, cudaMemcpyKind(kind)));
      for (size_t pitch : {4, 16})
        for (void* to : {(void*)device, (void*)nullptr}) {
          cudaMemcpy3DParms box{};
          box.dstPtr = make_cudaPitchedPtr(to, pitch, pitch, 2);
          box.srcPtr = make_cudaPitchedPtr(host, 16, 16, 2);
          box.extent = make_cudaExtent(2 * bytes, 2, 1);
          box.kind = cudaMemcpyKind(kind);
          SAY(cudaMemcpy3D(&box));
        }
    }
  for (size_t slice : {0, 1, 2})
    for (size_t height : {0, 1, 2}) SAY(cudaMemset3D(make_cudaPitchedPtr(device, 16, 16, slice), 0, make_cudaExtent(8, height, 1)));
}

SECTION(textures) {
  char* memory = nullptr;
  CHECK(cudaMalloc(&memory, 1 << 16));
  const int kinds[][5] = {{0, 32}, {0, 16}, {1, 8}, {1, 32}, {2, 16}, {2, 32}, {5, 8}, {10, 16, 16, 16, 16}, {16, 16, 16, 16, 16},
                          {17, 8, 8, 8, 8}, {23, 8}, {26, 8, 8}, {27, 16, 16, 16}, {28, 16, 16, 16}, {29, 8, 8, 8, 8}, {31, 10, 10, 10, 2}};
  for (auto& kind : kinds)
    for (int type : {0, 1, 2, 3}) {
      const auto element = cudaChannelFormatDesc{kind[1], kind[2], kind[3], kind[4], cudaChannelFormatKind(kind[0])};
      if (kind[0] > 2 && type > 1) continue;  // the driver refuses these for plain memory
      cudaResourceDesc resource{};
      resource.resType = cudaResourceType(type);
      if (type == 0) CHECK(cudaMallocArray(&resource.res.array.array, &element, 16, 16));
      if (type == 1) CHECK(cudaMallocMipmappedArray(&resource.res.mipmap.mipmap, &element, make_cudaExtent(16, 16, 0), 2));
      if (type == 2) resource.res.linear = {memory, element, 4096};
      if (type == 3) resource.res.pitch2D = {memory, element, 16, 16, 512};
      VALUE(100 * kind[0] + kind[1]);
      VALUE(type);
      for (int filter : {0, 1})
        for (int read : {0, 1}) {
          cudaTextureDesc how{};
          how.filterMode = cudaTextureFilterMode(filter);
          how.readMode = cudaTextureReadMode(read);
          how.normalizedCoords = type == 1;
          cudaTextureObject_t texture;
          SAY(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
        }
    }
}

SECTION(pitches) {
  void* memory = nullptr;
  size_t pitch = 0;
  for (size_t width : {SIZE_MAX, SIZE_MAX - 511, size_t{1} << 40}) SAY(cudaMallocPitch(&memory, &pitch, width, 1));
  for (size_t height : {SIZE_MAX, size_t{1} << 40}) SAY(cudaMallocPitch(&memory, &pitch, 1, height));
  SAY(cudaMallocPitch(&memory, &pitch, size_t{1} << 33, size_t{1} << 33));
  SAY(cudaMallocPitch(&memory, &pitch, size_t{1} << 20, size_t{1} << 20));
  SAY(cudaMallocPitch(&memory, &pitch, size_t{1} << 62, 4));
}

SECTION(versions) {
  for (unsigned version : {0u, 1u, 999u, 12000u, 13000u, 99999u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
    void *entry = &entry, *unasked = &unasked;
    auto state = cudaDriverEntryPointQueryResult(77);
    SAY(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, version, 0, &state));
    VALUE(int(state));
    VALUE(entry == nullptr);
    SAY(cudaGetDriverEntryPointByVersion("cuMemAlloc", &unasked, version, 0, nullptr));
    VALUE(unasked == nullptr);
  }
}

SECTION(registered) {
  const uintptr_t last = uintptr_t{0} - 4096, kernels = uintptr_t{1} << 63, users = uintptr_t{1} << 47;
  for (uintptr_t address : {last, kernels, uintptr_t{0} - users, users, 2 * users, users - 4096, uintptr_t{4096}})
    SAY(cudaHostRegister((void*)address, 4096, 0));
  for (uintptr_t address : {last, users - 4096}) SAY(cudaHostRegister((void*)address, 8192, 0));
}

// Memory that is freed in a stream is invalid at once, even before the stream reaches the free.
SECTION(freed) {
  void* memory = nullptr;
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaMallocAsync(&memory, 1 << 20, stream));
  const auto address = (CUdeviceptr)memory;
  uint64_t value;
  CUdeviceptr start;
  for (bool isFreed : {false, true}) {
    if (isFreed) CHECK(cudaFreeAsync(memory, stream));
    SAYCU(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    SAYCU(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address);
    SAYCU(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address);
    SAYCU(cuPointerGetAttribute, &value, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, address);
    SAYCU(cuMemGetAddressRange, &start, nullptr, address);
  }
}
