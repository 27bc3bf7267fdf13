// What the commonest CUDA calls cost the program that makes them. Prints NAME,MICROSECONDS, the median of many calls.
// Run it natively and under `vgpuctl run`, or let tests/bench/compare-calls do both in turn.
#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#define CHECK(call)                                                                                  \
  do {                                                                                               \
    cudaError_t error = (call);                                                                      \
    if (error == cudaSuccess) break;                                                                 \
    std::fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));                              \
    std::exit(1);                                                                                    \
  } while (false)

__global__ void nothing(float*, float*, float*, int, float) {}

using Clock = std::chrono::steady_clock;

double since(Clock::time_point start) { return std::chrono::duration<double, std::micro>(Clock::now() - start).count(); }

// The median time of one of `calls` calls of `body`, over `rounds` rounds; `after` is not counted.
template <typename Body, typename After>
void measure(const std::string& name, int rounds, int calls, Body body, After after) {
  std::vector<double> times;
  for (int round = 0; round < rounds; ++round) {
    auto start = Clock::now();
    for (int i = 0; i < calls; ++i) body();
    times.push_back(since(start) / calls);
    after();
  }
  std::nth_element(times.begin(), times.begin() + rounds / 2, times.end());
  std::printf("%s,%.3f\n", name.c_str(), times[rounds / 2]);
}

void measureCopies(const char* kind, char* device, char* host) {
  struct Size {
    const char* name;
    size_t bytes;
    int rounds;
  };
  const Size sizes[] = {{"4 B", 4, 500}, {"4 KiB", 4096, 500}, {"64 KiB", 65536, 500}, {"1 MiB", 1 << 20, 200},
                        {"16 MiB", 16 << 20, 30}, {"256 MiB", 256 << 20, 10}};
  for (auto& size : sizes) {
    auto name = std::string(" ") + size.name + " " + kind;
    measure("copy to device" + name, size.rounds, 1,
            [&] { CHECK(cudaMemcpy(device, host, size.bytes, cudaMemcpyHostToDevice)); }, [] { CHECK(cudaDeviceSynchronize()); });
    measure("copy from device" + name, size.rounds, 1,
            [&] { CHECK(cudaMemcpy(host, device, size.bytes, cudaMemcpyDeviceToHost)); }, [] {});
  }
}

int main() {
  auto start = Clock::now();
  CHECK(cudaFree(nullptr));
  std::printf("first CUDA call,%.1f\n", since(start));
  auto launch = [] { nothing<<<64, 256>>>(nullptr, nullptr, nullptr, 0, 1.f); };
  auto wait = [] { CHECK(cudaDeviceSynchronize()); };
  auto none = [] {};
  launch();
  wait();
  measure("posted launch", 15, 500, launch, wait);
  constexpr int many = 20000;
  measure("20,000 launches + wait", 7, 1, [&] { for (int i = 0; i < many; ++i) launch(); wait(); }, none);
  measure("launch + wait", 3000, 1, [&] { launch(); wait(); }, none);
  measure("idle synchronize", 30, 100, wait, none);
  cudaEvent_t event;
  CHECK(cudaEventCreate(&event));
  measure("event record + synchronize", 3000, 1,
          [&] { CHECK(cudaEventRecord(event)); CHECK(cudaEventSynchronize(event)); }, none);
  measure("query of a finished event", 30, 100, [&] { CHECK(cudaEventQuery(event)); }, none);
  void* memory;
  measure("malloc + free 1 MiB", 300, 1, [&] { CHECK(cudaMalloc(&memory, 1 << 20)); CHECK(cudaFree(memory)); }, none);

  constexpr size_t most = 256 << 20;
  char *device, *pinned, *pageable = static_cast<char*>(std::malloc(most));
  CHECK(cudaMalloc(&device, most));
  CHECK(cudaMallocHost(&pinned, most));
  std::memset(pageable, 1, most);
  std::memset(pinned, 1, most);
  measureCopies("pageable", device, pageable);
  measureCopies("pinned", device, pinned);
  return 0;
}
