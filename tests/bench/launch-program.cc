// What a call costs the program that makes it. Run under vgpuctl, like any other program of the driver API.
#include <benchmark/benchmark.h>
#include <cuda.h>

#include <cstdio>
#include <cstdlib>
#include <thread>

namespace {

void check(CUresult result, const char* what) {
  if (result == CUDA_SUCCESS) return;
  std::fprintf(stderr, "%s: CUDA error %d\n", what, static_cast<int>(result));
  std::exit(1);
}

constexpr const char* source = R"(
.version 8.0
.target sm_75
.address_size 64
.visible .entry nothing(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n, .param .f32 s) { ret; }
)";

CUfunction nothing;

// A launch with as many parameters as kernels usually have.
class Launch {
 public:
  void post() {
    ++count;
    check(cuLaunchKernel(nothing, 1, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr), "launch");
  }
  unsigned posted() const { return count; }

 private:
  CUdeviceptr pointer = 0;
  unsigned count = 0;
  float scale = 1;
  void* parameters[5] = {&pointer, &pointer, &pointer, &count, &scale};
};

// Posts as many launches as a stream takes without blocking the thread; the GPU's time for them is not counted.
void postedLaunch(benchmark::State& state) {
  Launch launch;
  for (auto _ : state) {
    launch.post();
    if (launch.posted() % 896 != 0) continue;
    state.PauseTiming();
    check(cuCtxSynchronize(), "synchronize");
    state.ResumeTiming();
  }
  check(cuCtxSynchronize(), "synchronize");
}
BENCHMARK(postedLaunch);

void launchAndWait(benchmark::State& state) {
  Launch launch;
  for (auto _ : state) {
    launch.post();
    check(cuCtxSynchronize(), "synchronize");
  }
}
BENCHMARK(launchAndWait)->UseRealTime();

void idleSynchronize(benchmark::State& state) {
  check(cuCtxSynchronize(), "synchronize");
  for (auto _ : state) check(cuCtxSynchronize(), "synchronize");
}
BENCHMARK(idleSynchronize);

void allocateAndFree(benchmark::State& state) {
  for (auto _ : state) {
    CUdeviceptr memory;
    check(cuMemAlloc(&memory, 1 << 20), "allocate");
    check(cuMemFree(memory), "free");
  }
}
BENCHMARK(allocateAndFree)->UseRealTime();

void allocateAndFreeTwoGiB(benchmark::State& state) {
  for (auto _ : state) {
    CUdeviceptr memory[2];
    for (auto& one : memory) check(cuMemAlloc(&one, 1 << 30), "allocate");
    for (auto one : memory) check(cuMemFree(one), "free");
  }
}
BENCHMARK(allocateAndFreeTwoGiB)->UseRealTime();

// With a thread that has made no call before; the figure below is the cost of the thread alone.
void launchAndWaitInFreshThread(benchmark::State& state) {
  CUcontext context;
  check(cuCtxGetCurrent(&context), "context");
  for (auto _ : state)
    std::thread([&] {
      Launch launch;
      check(cuCtxSetCurrent(context), "context");
      launch.post();
      check(cuCtxSynchronize(), "synchronize");
    }).join();
}
BENCHMARK(launchAndWaitInFreshThread)->UseRealTime();

void freshThread(benchmark::State& state) {
  for (auto _ : state) std::thread([] {}).join();
}
BENCHMARK(freshThread)->UseRealTime();

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  CUcontext context;
  CUmodule module;
  check(cuInit(0), "init");
  check(cuDevicePrimaryCtxRetain(&context, 0), "context");
  check(cuCtxSetCurrent(context), "context");
  check(cuModuleLoadData(&module, source), "module");
  check(cuModuleGetFunction(&nothing, module, "nothing"), "function");
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
