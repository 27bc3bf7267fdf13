// Threads that wait for kernels that print: when a thread's wait returns, its kernel's output has been written, whichever thread wrote it.
#include <string>

#include "captured-output.h"

__global__ void say(int thread, int round) { printf("kernel %d %d\n", thread, round); }

int main() {
  alarm(60);
  constexpr int threads = 8, rounds = 40;
  CapturedOutput output(CapturedOutput::Into::file);
  CHECK(cudaFree(nullptr));
  auto work = [&](int thread, int from, int to) {
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (int round = from; round < to; ++round) {
      say<<<1, 1, 0, stream>>>(thread, round);
      CHECK(cudaGetLastError());
      if (thread % 3 == 0) {
        CHECK(cudaDeviceSynchronize());
      } else {
        CHECK(cudaStreamSynchronize(stream));
      }
      std::printf("host %d %d\n", thread, round);
    }
    CHECK(cudaStreamDestroy(stream));
  };
  auto workAll = [&](int from, int to) {
    std::vector<std::thread> all;
    for (int thread = 1; thread <= threads; ++thread) all.emplace_back(work, thread, from, to);
    for (auto& thread : all) thread.join();
  };
  workAll(0, rounds / 2);
  pausePoint();
  workAll(rounds / 2, rounds);

  const std::string text = output.finish();
  bool ok = true;
  size_t size = 0;
  for (int thread = 1; thread <= threads; ++thread)
    for (int round = 0; round < rounds; ++round) {
      const std::string numbers = " " + std::to_string(thread) + " " + std::to_string(round) + "\n";
      const size_t kernel = text.find("kernel" + numbers), host = text.find("host" + numbers);
      ok &= EXPECT(kernel != std::string::npos && host != std::string::npos && kernel < host);
      size += sizeof "kernelhost" - 1 + 2 * numbers.size();
    }
  return verdict("print-threads", ok & EXPECT(text.size() == size));
}
