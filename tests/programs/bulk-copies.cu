// Copies of many sizes in and out, in two threads with a stream each, with a kernel between them; every byte is compared. Half of the data
// is compressible, half is not.
//
//   bulk-copies [FILE]    prints "copied N" after each round of thread 0; ends after the round in which FILE exists, or after
//                         two rounds
#include <thread>

#include "program.h"

namespace {

constexpr size_t mostWords = size_t{9} << 18;  // 9 MiB
constexpr size_t sizes[] = {1, 1000, 16 << 10, (16 << 10) + 1, 200'000, 1 << 18, (1 << 18) + 7, 3 << 18, mostWords};

__global__ void mix(uint32_t* words, size_t count, uint32_t round) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) words[i] = words[i] * 5 + round;
}

uint32_t wordOf(size_t index, uint32_t seed) {
  if (index / 4096 % 2 == 0) return seed;
  uint64_t mixed = (index + (uint64_t{seed} << 40)) * 0x9e3779b97f4a7c15u;
  return static_cast<uint32_t>(mixed >> 29);
}

// Whether all bytes come back as the GPU left them.
bool copies(uint32_t seed) {
  bool ok = true;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  {
    DeviceArray<uint32_t> device(mostWords);
    std::vector<uint32_t> words, back;
    for (size_t count : sizes) {
      words.resize(count);
      back.assign(count, 0);
      for (size_t i = 0; i < count; ++i) words[i] = wordOf(i, seed);
      CHECK(cudaMemcpyAsync(device, words.data(), count * sizeof(uint32_t), cudaMemcpyHostToDevice, stream));
      mix<<<16, 256, 0, stream>>>(device, count, seed);
      CHECK(cudaMemcpyAsync(back.data(), device, count * sizeof(uint32_t), cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      for (size_t i = 0; i < count && ok; ++i) ok = back[i] == words[i] * 5 + seed;
      if (!ok) std::printf("bulk-copies: %zu words were copied wrongly\n", count);
    }
  }
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

}  // namespace

int main(int count, char** arguments) {
  std::atomic<bool> ok{true}, ends{false};
  auto work = [&](uint32_t thread) {
    for (uint32_t round = 0; ok && !ends; ++round) {
      const bool last = count > 1 ? access(arguments[1], F_OK) == 0 : round == 1;
      if (!copies(2 * round + thread)) ok = false;
      if (thread != 0) continue;
      std::printf("copied %u\n", round);
      std::fflush(stdout);
      if (last) ends = true;
    }
  };
  std::thread other(work, 1);
  work(0);
  other.join();
  pausePoint();
  ok = ok && copies(77);
  std::printf("bulk-copies: %s\n", ok ? "ok" : "wrong");
  return ok ? 0 : 1;
}
