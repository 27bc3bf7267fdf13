// Functions that CUDA keeps for old programs: reference-counted contexts, and one launch on several devices.
#include <algorithm>

#include "conformance.h"

__global__ void add(int* value, int summand) { *value += summand; }
__global__ void subtract(int* value) { *value -= 1; }

static void showCurrent(CUcontext context) {
  CUcontext current = nullptr;
  unsigned version = 0;
  SAYCU(cuCtxGetCurrent, &current);
  VALUE(current == context);
  SAYCU(cuCtxGetApiVersion, context, &version);
}

SECTION(nothingCurrent) {
  CUcontext got = nullptr;
  SAYCU(cuCtxAttach, &got, 0);
  SAYCU(cuCtxDetach, nullptr);
  DRIVER(cuInit)(0);
  SAYCU(cuCtxAttach, &got, 0);
  SAYCU(cuCtxAttach, nullptr, 0);
  SAYCU(cuCtxDetach, nullptr);
}

SECTION(counted) {
  DRIVER(cuInit)(0);
  CUcontext context = nullptr, got = nullptr;
  SAYCU(cuCtxCreate, &context, nullptr, 0, 0);
  SAYCU(cuCtxAttach, &got, 1);
  SAYCU(cuCtxAttach, nullptr, 0);
  SAYCU(cuCtxAttach, &got, 0);
  VALUE(got == context);
  SAYCU(cuCtxAttach, &got, 0);
  for (int k = 0; k < 3; ++k) {
    SAYCU(cuCtxDetach, context);
    showCurrent(context);
  }
  SAYCU(cuCtxDetach, context);
}

SECTION(destroyedWhileCounted) {
  DRIVER(cuInit)(0);
  CUcontext context = nullptr, got = nullptr;
  SAYCU(cuCtxCreate, &context, nullptr, 0, 0);
  SAYCU(cuCtxAttach, &got, 0);
  SAYCU(cuCtxDestroy, context);
  showCurrent(context);
  SAYCU(cuCtxDetach, context);
  SAYCU(cuCtxAttach, &got, 0);
}

SECTION(notCurrent) {
  DRIVER(cuInit)(0);
  CUcontext first = nullptr, second = nullptr, got = nullptr;
  SAYCU(cuCtxCreate, &first, nullptr, 0, 0);
  SAYCU(cuCtxAttach, &got, 0);
  SAYCU(cuCtxCreate, &second, nullptr, 0, 0);
  SAYCU(cuCtxDetach, first);
  showCurrent(second);
  SAYCU(cuCtxSetCurrent, first);
  SAYCU(cuCtxDetach, nullptr);
  SAYCU(cuCtxDetach, first);
  showCurrent(first);
  SAYCU(cuCtxPopCurrent, &got);
  VALUE(got == second);
  SAYCU(cuCtxDetach, second);
  showCurrent(second);
}

SECTION(pushed) {
  DRIVER(cuInit)(0);
  CUcontext context = nullptr, got = nullptr;
  SAYCU(cuCtxCreate, &context, nullptr, 0, 0);
  SAYCU(cuCtxPushCurrent, context);
  SAYCU(cuCtxDetach, context);
  SAYCU(cuCtxPopCurrent, &got);
  VALUE(got == context);
  SAYCU(cuCtxPopCurrent, &got);
}

SECTION(primary) {
  CHECK(cudaFree(nullptr));
  CUcontext context = nullptr, got = nullptr;
  unsigned flags = 9;
  int active = 9;
  SAYCU(cuCtxGetCurrent, &context);
  SAYCU(cuCtxDetach, context);
  SAYCU(cuCtxAttach, &got, 0);
  VALUE(got == context);
  SAYCU(cuCtxDetach, context);
  showCurrent(context);
  SAYCU(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  VALUE(active);
  SAYCU(cuCtxDetach, context);
  showCurrent(context);
  SAYCU(cuDevicePrimaryCtxGetState, 0, &flags, &active);
  VALUE(active);
}

// A launch of `add` on device 0 in its own stream; the cases below change parts of it.
struct Together {
  int* value = nullptr;
  int summand = 5;
  void* arguments[2] = {&value, &summand};
  cudaStream_t stream = nullptr;
  CUfunction function = nullptr;
  CUDA_LAUNCH_PARAMS launch{};

  Together() {
    CHECK(cudaMalloc(&value, 64));
    CHECK(cudaMemset(value, 0, 64));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(add)));
    launch = {function, 1, 1, 1, 1, 1, 1, 0, stream, arguments};
  }
  // Prints the result of the launch with one change.
  template <typename Change>
  void changed(const char* what, Change change) {
    CUDA_LAUNCH_PARAMS other = launch;
    change(other);
    std::printf("%s: %s\n", currentSection, what);
    SAYCU(cuLaunchCooperativeKernelMultiDevice, &other, 1, 0);
    SAY(cudaGetLastError());
  }
  void show() {
    SAY(cudaDeviceSynchronize());
    int is = -1;
    SAY(cudaMemcpy(&is, value, sizeof is, cudaMemcpyDefault));
    VALUE(is);
  }
};

SECTION(onOneDevice) {
  Together one;
  int can = 9;
  SAYCU(cuDeviceGetAttribute, &can, CU_DEVICE_ATTRIBUTE_COOPERATIVE_MULTI_DEVICE_LAUNCH, 0);
  VALUE(can);
  SAYCU(cuLaunchCooperativeKernelMultiDevice, nullptr, 1, 0);
  SAYCU(cuLaunchCooperativeKernelMultiDevice, &one.launch, 0, 0);
  for (unsigned flags = 0; flags <= 4; ++flags) SAYCU(cuLaunchCooperativeKernelMultiDevice, &one.launch, 1, flags);
  one.show();
  CUDA_LAUNCH_PARAMS twice[] = {one.launch, one.launch};
  SAYCU(cuLaunchCooperativeKernelMultiDevice, twice, 2, 0);
  CHECK(cudaStreamCreate(&twice[1].hStream));
  SAYCU(cuLaunchCooperativeKernelMultiDevice, twice, 2, 0);
  SAYCU(cuLaunchCooperativeKernelMultiDevice, twice, 1000, 0);
  one.show();
}

SECTION(changedOnOneDevice) {
  Together one;
  one.changed("no function", [](auto& launch) { launch.function = nullptr; });
  one.changed("the null stream", [](auto& launch) { launch.hStream = nullptr; });
  one.changed("the legacy stream", [](auto& launch) { launch.hStream = CU_STREAM_LEGACY; });
  one.changed("the thread's stream", [](auto& launch) { launch.hStream = CU_STREAM_PER_THREAD; });
  one.changed("no blocks", [](auto& launch) { launch.gridDimX = 0; });
  one.changed("no threads", [](auto& launch) { launch.blockDimY = 0; });
  one.changed("more blocks than fit", [](auto& launch) { launch.gridDimX = 1 << 20; });
  one.changed("more threads than a block has", [](auto& launch) { launch.blockDimX = 2048; });
  one.changed("more shared memory than there is", [](auto& launch) { launch.sharedMemBytes = 1 << 20; });
  one.changed("no arguments", [](auto& launch) { launch.kernelParams = nullptr; });
  one.show();
  CUkernel kernel = nullptr;
  CHECK(cudaGetKernel(reinterpret_cast<cudaKernel_t*>(&kernel), reinterpret_cast<const void*>(add)));
  one.changed("a kernel", [&](auto& launch) { launch.function = reinterpret_cast<CUfunction>(kernel); });
  one.show();
}

SECTION(captured) {
  Together one;
  cudaGraph_t graph = nullptr;
  for (unsigned flags : {0u, 3u}) {
    SAY(cudaStreamBeginCapture(one.stream, cudaStreamCaptureModeThreadLocal));
    SAYCU(cuLaunchCooperativeKernelMultiDevice, &one.launch, 1, flags);
    SAY(cudaStreamEndCapture(one.stream, &graph));
    size_t nodes = 9;
    if (graph != nullptr) SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
    VALUE(nodes);
    SAY(cudaGetLastError());
    graph = nullptr;
  }
  one.show();
}

SECTION(foreignContext) {
  Together one;
  CUcontext own = nullptr, other = nullptr;
  SAYCU(cuCtxGetCurrent, &own);
  SAYCU(cuCtxCreate, &other, nullptr, 0, 0);
  SAYCU(cuLaunchCooperativeKernelMultiDevice, &one.launch, 1, 0);
  CUDA_LAUNCH_PARAMS mixed = one.launch;
  SAYCU(cuStreamCreate, &mixed.hStream, 0);
  SAYCU(cuLaunchCooperativeKernelMultiDevice, &mixed, 1, 0);
  SAYCU(cuCtxSetCurrent, own);
  one.show();
}

SECTION(onTwoDevices) {
  int count = 0;
  CHECK(cudaGetDeviceCount(&count));
  if (count < 2) return;
  int *values[2] = {}, summand = 7, is = -1;
  void* arguments[2][2];
  CUDA_LAUNCH_PARAMS launches[2];
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    Together one;
    values[device] = one.value;
    launches[device] = one.launch;
    arguments[device][0] = &values[device];
    arguments[device][1] = &summand;
    launches[device].kernelParams = arguments[device];
  }
  for (unsigned flags = 0; flags <= 3; ++flags) SAYCU(cuLaunchCooperativeKernelMultiDevice, launches, 2, flags);
  for (int device : {0, 1}) {
    CHECK(cudaSetDevice(device));
    SAY(cudaDeviceSynchronize());
    SAY(cudaMemcpy(&is, values[device], sizeof is, cudaMemcpyDefault));
    VALUE(is);
  }
  auto other = launches[1];
  auto with = [&](const char* what) {
    std::printf("%s: %s\n", currentSection, what);
    SAYCU(cuLaunchCooperativeKernelMultiDevice, launches, 2, 0);
    launches[1] = other;
  };
  launches[1].gridDimX = 2;
  with("another grid");
  launches[1].blockDimX = 2;
  with("another block");
  launches[1].sharedMemBytes = 16;
  with("other shared memory");
  CHECK(cudaGetFuncBySymbol(&launches[1].function, reinterpret_cast<const void*>(subtract)));
  with("another kernel");
  launches[1].function = launches[0].function;
  with("the first device's function");
  launches[1].hStream = launches[0].hStream;
  with("the first device's stream");
  std::swap(launches[0], launches[1]);
  with("in the other order");
}
