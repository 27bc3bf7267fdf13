// Costs of managed memory: kernels that use it in place, and bytes that the program and the device pass to each other. With two devices:
// kernels of the second device on the first one's memory, without and behind a prefetch; the prefetch, and one to the present location.
//   managed-figures --bench full|quick managed|managed-devices
#include <numeric>
#include <string>

#include "bench.h"

namespace {

__global__ void addOne(float* values, size_t count) {
  const size_t stride = static_cast<size_t>(gridDim.x) * blockDim.x;
  for (size_t i = static_cast<size_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) values[i] += 1;
}

struct Memory {
  explicit Memory(size_t megabytes, bool isManaged) : count((megabytes << 20) / sizeof(float)) {
    if (isManaged) CHECK(cudaMallocManaged(&values, count * sizeof(float)));
    else CHECK(cudaMalloc(&values, count * sizeof(float)));
    CHECK(cudaMemset(values, 0, count * sizeof(float)));
    CHECK(cudaDeviceSynchronize());
  }
  ~Memory() { CHECK(cudaFree(values)); }
  void launch() const {
    addOne<<<1024, 256>>>(values, count);
    CHECK(cudaGetLastError());
  }

  float* values = nullptr;
  const size_t count;
};

// The GPU's time per kernel, measured with events over many kernels.
void measureKernel(const Bench& bench, const std::string& what, const Memory& memory) {
  const int kernels = bench.size(50, 2);
  cudaEvent_t begin, end;
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreate(&end));
  std::vector<double> times;
  memory.launch();
  for (int round = 0; round < bench.size(9, 2); ++round) {
    float milliseconds;
    CHECK(cudaEventRecord(begin));
    for (int i = 0; i < kernels; ++i) memory.launch();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    times.push_back(1000.0 * milliseconds / kernels);
  }
  printFigure("kernel over " + what, "us", median(times));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(end));
}

void measureManaged(const Bench& bench) {
  const size_t large = bench.size<size_t>(256, 2), exchanged = bench.size<size_t>(64, 1);
  measureKernel(bench, std::to_string(large) + " MiB of device memory", Memory(large, false));
  measureKernel(bench, std::to_string(large) + " MiB of managed memory", Memory(large, true));

  const Memory memory(exchanged, true);
  const int rounds = bench.size(15, 2);
  const std::string size = std::to_string(exchanged) + " MiB";
  const auto wait = [] { CHECK(cudaDeviceSynchronize()); };
  const Memory little(1, true);
  measure("kernel, wait and the host's look at one number of managed memory", rounds, bench.size(50, 2),
          [&] {
            little.launch();
            wait();
            if (*static_cast<volatile float*>(little.values) == 0) std::exit(1);
          },
          wait);
  double sum = 0;
  measure("host reads " + size + " of managed memory that a kernel wrote", rounds, 1,
          [&] { sum += std::accumulate(memory.values, memory.values + memory.count, 0.0); },
          [&] {
            memory.launch();
            wait();
          });
  measure("host writes " + size + " of managed memory, and a kernel uses it", rounds, 1,
          [&] {
            std::fill(memory.values, memory.values + memory.count, 1.0f);
            memory.launch();
            wait();
          },
          [] {});
  if (sum == 0) std::exit(1);
}

// Half of the memory is moved back and forth, with a kernel on it each time.
void measureDevices(const Bench& bench) {
  const size_t size = bench.size<size_t>(1024, 8), part = (size << 20) / 2;
  const std::string half = std::to_string(size / 2) + " MiB";
  CHECK(cudaSetDevice(0));
  Memory memory(size, true);
  const auto wait = [] { CHECK(cudaDeviceSynchronize()); };
  const auto prefetch = [&](int device, size_t bytes) {
    CHECK(cudaMemPrefetchAsync(memory.values, bytes, {cudaMemLocationTypeDevice, device}, 0, nullptr));
    wait();
  };
  memory.launch();
  prefetch(0, size << 20);
  std::vector<double> there, back;
  for (int round = 0; round < bench.size(7, 1); ++round)
    for (int device : {1, 0}) {
      const auto start = Clock::now();
      prefetch(device, part);
      (device == 1 ? there : back).push_back(microsecondsSince(start));
      memory.launch();
      wait();
    }
  printFigure("prefetch of " + half + " to another device", "us", median(there));
  printFigure("prefetch of " + half + " back", "us", median(back));
  measure("prefetch of " + half + " to where it is", 7, bench.size(50, 2), [&] { prefetch(0, part); }, wait);
  CHECK(cudaSetDevice(1));
  measureKernel(bench, std::to_string(size) + " MiB of another device's managed memory", memory);
  prefetch(1, size << 20);
  measureKernel(bench, std::to_string(size) + " MiB that was prefetched to another device", memory);
}

constexpr Group groups[] = {{"managed", measureManaged}, {"managed-devices", measureDevices}};

}  // namespace

int main(int argc, char** argv) { return runGroup(argc, argv, "managed-figures", groups); }
