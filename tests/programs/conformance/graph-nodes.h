// A graph and memory for its nodes, shared by the programs about nodes' parameters.
#pragma once

#include "numbers.h"

static __global__ void add(int* to, int value) { *to += value; }
static __global__ void multiply(int* to, int value) { *to *= value; }

constexpr size_t wordCount = 64;
inline int *words, *others;  // on the device
inline int host[wordCount];  // pageable
inline int* pinned;
inline cudaStream_t stream;
inline cudaGraph_t graph;
inline cudaGraphNode_t node, second;
inline cudaGraphExec_t executable;

inline void setUp() {
  CHECK(cudaMalloc(&words, wordCount * sizeof(int)));
  CHECK(cudaMalloc(&others, wordCount * sizeof(int)));
  CHECK(cudaMallocHost(&pinned, wordCount * sizeof(int)));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CHECK(cudaGraphCreate(&graph, 0));
  for (size_t i = 0; i < wordCount; ++i) host[i] = static_cast<int>(i), pinned[i] = static_cast<int>(100 + i);
  CHECK(cudaMemcpy(words, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(others, 0, wordCount * sizeof(int)));
  CHECK(cudaDeviceSynchronize());
}

inline int wordAt(const int* place) {
  int value = 0;
  CHECK(cudaMemcpy(&value, place, sizeof value, cudaMemcpyDefault));
  return value;
}

// Prints some of the words there.
inline void sayWords(const char* what, const int* from, std::initializer_list<int> places) {
  std::printf("%s: %s at", currentSection, what);
  for (int place : places) std::printf(" %d", place);
  std::printf(" is");
  for (int place : places) std::printf(" %d", wordAt(from + place));
  std::printf("\n");
}
#define WORDS(from, ...) sayWords(#from, from, __VA_ARGS__)

// Runs the graph in its present state.
inline void run() {
  cudaGraphExec_t made = nullptr;
  if (SAY(cudaGraphInstantiate(&made, graph, 0)) != cudaSuccess) return;
  SAY(cudaGraphLaunch(made, stream));
  SAY(cudaStreamSynchronize(stream));
  CHECK(cudaGraphExecDestroy(made));
}
inline void launch() {
  SAY(cudaGraphLaunch(executable, stream));
  SAY(cudaStreamSynchronize(stream));
}

inline cudaKernelNodeParams kernelNode(void (*function)(int*, int), void** arguments) {
  cudaKernelNodeParams parameters{};
  parameters.func = reinterpret_cast<void*>(function);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(1);
  parameters.kernelParams = arguments;
  return parameters;
}

inline cudaMemsetParams fillOf(void* place, unsigned value, unsigned elementSize, size_t width, size_t height = 1,
                               size_t pitch = 0) {
  cudaMemsetParams parameters{};
  parameters.dst = place;
  parameters.pitch = pitch;
  parameters.value = value;
  parameters.elementSize = elementSize;
  parameters.width = width;
  parameters.height = height;
  return parameters;
}

inline cudaMemcpy3DParms copyOf(void* to, void* from, size_t pitch, cudaExtent extent, cudaMemcpyKind kind) {
  cudaMemcpy3DParms parameters{};
  parameters.srcPtr = make_cudaPitchedPtr(from, pitch, extent.width, extent.height);
  parameters.dstPtr = make_cudaPitchedPtr(to, pitch, extent.width, extent.height);
  parameters.extent = extent;
  parameters.kind = kind;
  return parameters;
}

inline void count(void* counter) { ++*static_cast<int*>(counter); }
inline void countTen(void* counter) { *static_cast<int*>(counter) += 10; }

inline void showCopy(cudaGraphNode_t of) {
  cudaMemcpy3DParms got{};
  if (SAY(cudaGraphMemcpyNodeGetParams(of, &got)) != cudaSuccess) return;
  auto show = [&](const char* what, cudaArray_t array, const cudaPos& at, const cudaPitchedPtr& memory) {
    sayNumbers(what, {array != nullptr, memory.ptr != nullptr, at.x, at.y, at.z, memory.pitch, memory.xsize, memory.ysize});
  };
  show("source: array, memory, x, y, z, pitch, xsize, ysize", got.srcArray, got.srcPos, got.srcPtr);
  show("destination: array, memory, x, y, z, pitch, xsize, ysize", got.dstArray, got.dstPos, got.dstPtr);
  sayNumbers("extent, kind", {got.extent.width, got.extent.height, got.extent.depth, got.kind});
}

inline void showFill(cudaGraphNode_t of) {
  cudaMemsetParams got{};
  if (SAY(cudaGraphMemsetNodeGetParams(of, &got)) != cudaSuccess) return;
  sayNumbers("pitch, value, element size, width, height", {got.pitch, got.value, got.elementSize, got.width, got.height});
}
