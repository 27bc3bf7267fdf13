// Which of several wrong arguments a function of the runtime looks at first, and what it ignores.
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
      if (kind[0] > 2 && type > 1) continue;  // of plain memory the driver refuses these
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
