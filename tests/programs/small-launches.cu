// Programs whose time is dominated by launches: many small kernels, copies and fills in sequence, one group at a time:
//   small-launches --bench full|quick GROUP
// The groups are at the end. Each prints the time per launch, including all waits.
#include <string>

#include "bench.h"
#include "random-numbers.h"

namespace {

__global__ void step(float* a, int n) {
  if (n < 0) a[threadIdx.x] += n;
}

// The median over some rounds of the time per piece of work; `body` enqueues all `count` of them.
template <typename Body>
void measure(const Bench& bench, const std::string& name, int count, Body body) {
  std::vector<double> times;
  body();
  CHECK(cudaDeviceSynchronize());
  for (int round = 0; round < bench.size(5, 1); ++round) {
    const auto start = Clock::now();
    body();
    CHECK(cudaDeviceSynchronize());
    times.push_back(microsecondsSince(start) / count);
  }
  printFigure(name, "us", median(times));
}

void measureInOneStream(const Bench& bench, const std::string& how, int period) {
  const int many = bench.size(20000, 400);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DeviceArray<float> array(128);
  int change = 0;
  measure(bench, "a launch of " + std::to_string(many) + ", " + how, many, [&] {
    if (period == 0) change += many;
    for (int i = 0; i < many; ++i) step<<<4, 128, 0, stream>>>(array, period != 0 ? i % period : change + i);
  });
}

void measureFourStreams(const Bench& bench) {
  constexpr int streams = 4, each = 50;
  const int many = bench.size(20000, 400);
  cudaStream_t made[streams];
  cudaEvent_t events[streams];
  for (int i = 0; i < streams; ++i) {
    CHECK(cudaStreamCreateWithFlags(&made[i], cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&events[i], cudaEventDisableTiming));
  }
  DeviceArray<float> array(128);
  measure(bench, "a launch of " + std::to_string(many) + ", over 4 streams, an event every 50", many, [&] {
    for (int i = 0; i < many; ++i) {
      const int now = i / each % streams, next = (now + 1) % streams;
      step<<<4, 128, 0, made[now]>>>(array, i % each);
      if (i % each != each - 1) continue;
      CHECK(cudaEventRecord(events[now], made[now]));
      CHECK(cudaStreamWaitEvent(made[next], events[now], 0));
    }
  });
}

void measureInTurn(const Bench& bench) {
  const int many = bench.size(20000, 400);
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  DeviceArray<float> a(256), b(256);
  measure(bench, "a launch, copy or fill of " + std::to_string(many) + ", in turn", many, [&] {
    for (int i = 0; i < many; ++i) {
      switch (i % 3) {
        case 0: step<<<4, 128, 0, stream>>>(a, i); break;
        case 1: CHECK(cudaMemcpyAsync(b, a, 256 * sizeof(float), cudaMemcpyDeviceToDevice, stream)); break;
        default: CHECK(cudaMemsetAsync(b, 0, 64 * sizeof(float), stream)); break;
      }
    }
  });
}

constexpr int side = 256;

__global__ void sweep(const float* from, float* to) {
  const int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y, at = y * side + x;
  const bool isInner = x > 0 && x < side - 1 && y > 0 && y < side - 1;
  to[at] = isInner ? 0.25f * (from[at - 1] + from[at + 1] + from[at - side] + from[at + side]) : from[at];
}
__global__ void difference(const float* a, const float* b, float* sum) {  // each warp adds its sum
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  float mine = fabsf(a[at] - b[at]);
  for (int lanes = 16; lanes > 0; lanes /= 2) mine += __shfl_down_sync(~0u, mine, lanes);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

// Jacobi's method for a plate with a warm edge.
void measureJacobi(const Bench& bench) {
  const int sweeps = bench.size(2000, 200);
  std::vector<float> plate(side * side);
  std::fill_n(plate.begin(), side, 1.f);
  DeviceArray<float> a(plate), b(plate), sum(1);
  const dim3 block(32, 8), grid(side / 32, side / 8);
  float residual = 0;
  measure(bench, "a sweep of " + std::to_string(sweeps) + " on 256 x 256, Jacobi", sweeps, [&] {
    for (int i = 0; i < sweeps; i += 2) {
      sweep<<<grid, block>>>(a, b);
      sweep<<<grid, block>>>(b, a);
      if (i % 100 != 98) continue;
      CHECK(cudaMemsetAsync(sum, 0, sizeof(float)));
      difference<<<side, side>>>(a, b, sum);
      CHECK(cudaMemcpy(&residual, sum, sizeof residual, cudaMemcpyDeviceToHost));
    }
  });
  bench.digest(a.download());
}

constexpr int width = 128;

__global__ void multiply(const float* weights, const float* in, float* out) {  // a few entries of each row
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += weights[threadIdx.x * 8 + i] * in[(threadIdx.x * 5 + i * 13) % width];
  out[threadIdx.x] = sum;
}
__global__ void addTo(float* out, const float* in) { out[threadIdx.x] += in[threadIdx.x]; }
__global__ void sigmoid(float* x) { x[threadIdx.x] = 1 / (1 + expf(-x[threadIdx.x])); }
__global__ void hyperbolic(float* out, const float* in) { out[threadIdx.x] = tanhf(in[threadIdx.x]); }
__global__ void blend(float* out, const float* gate, const float* in) {
  out[threadIdx.x] = out[threadIdx.x] * gate[threadIdx.x] + (1 - gate[threadIdx.x]) * in[threadIdx.x];
}

// A recurrent layer: ten kernels per step, one of which reads the step's own input.
void measureChain(const Bench& bench) {
  const int steps = bench.size(5000, 50);
  DeviceArray<float> inputs(randomFloats(width * steps, -1, 1, 1)), weights(randomFloats(width * 8, -1, 1, 2)), state(width),
      gate(width), more(width), out(width), kept(width);
  measure(bench, "a kernel of " + std::to_string(steps) + " steps of ten", 10 * steps, [&] {
    for (float* each : {static_cast<float*>(state), static_cast<float*>(kept)})
      CHECK(cudaMemsetAsync(each, 0, width * sizeof(float)));
    for (int i = 0; i < steps; ++i) {
      multiply<<<1, width>>>(weights, inputs + i * width, gate);
      multiply<<<1, width>>>(weights, state, more);
      addTo<<<1, width>>>(gate, more);
      sigmoid<<<1, width>>>(gate);
      multiply<<<1, width>>>(weights, kept, more);
      hyperbolic<<<1, width>>>(out, more);
      blend<<<1, width>>>(kept, gate, out);
      hyperbolic<<<1, width>>>(out, kept);
      blend<<<1, width>>>(state, gate, out);
      sigmoid<<<1, width>>>(more);
    }
  });
  bench.digest(state.download());
}

__global__ void spin(long long nanoseconds) {
  long long begin, now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
  do asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  while (now - begin < nanoseconds);
}

// The GPU's time dominates.
void measureLong(const Bench& bench) {
  const int many = bench.size(5000, 50);
  measure(bench, "a kernel of " + std::to_string(many) + " that take 20 us", many, [&] {
    for (int i = 0; i < many; ++i) spin<<<1, 1>>>(bench.size(20000, 1000));
  });
}

constexpr Group groups[] = {
    {"repeating", [](const Bench& bench) { measureInOneStream(bench, "parameters repeating every 50", 50); }},
    {"changing", [](const Bench& bench) { measureInOneStream(bench, "parameters changing every time", 0); }},
    {"four-streams", measureFourStreams},
    {"in-turn", measureInTurn},
    {"jacobi", measureJacobi},
    {"chain", measureChain},
    {"long", measureLong}};

}  // namespace

int main(int argc, char** argv) { return runGroup(argc, argv, "small-launches", groups); }
