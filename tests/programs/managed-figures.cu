// What managed memory costs: kernels that use it where it is, and bytes that the program and the device hand to each other.
//   managed-figures --bench full|quick managed
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

// The GPU's time for one kernel of many, by events.
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

constexpr Group groups[] = {{"managed", measureManaged}};

}  // namespace

int main(int argc, char** argv) { return runGroup(argc, argv, "managed-figures", groups); }
