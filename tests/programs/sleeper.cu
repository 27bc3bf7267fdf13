// Launches for argv[1] seconds (default 1) and counts its launches on the device, so that it can be stopped, migrated or killed at any
// moment. Prints a line when it has begun.
#include "program.h"

#include <chrono>

constexpr int count = 4096, block = 256;

__global__ void addOne(unsigned* counters) { counters[blockIdx.x * block + threadIdx.x] += 1; }

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  DeviceArray<unsigned> counters(std::vector<unsigned>(count, 0));
  cudaStream_t streams[2];
  for (cudaStream_t& stream : streams) CHECK(cudaStreamCreate(&stream));
  std::printf("sleeper: running\n");
  std::fflush(stdout);

  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  const int launchesBetweenWaits = 16;
  unsigned launches = 0;
  bool ok = true;
  do {
    // The streams alternate; each one's batch is complete before the other's begins.
    const cudaStream_t stream = streams[launches / launchesBetweenWaits % 2];
    for (int i = 0; i < launchesBetweenWaits; ++i, ++launches) addOne<<<count / block, block, 0, stream>>>(counters);
    CHECK(cudaGetLastError());
    CHECK(cudaStreamSynchronize(stream));
    unsigned last = 0;
    CHECK(cudaMemcpy(&last, counters + (count - 1), sizeof last, cudaMemcpyDeviceToHost));
    ok = EXPECT(last == launches);
  } while (ok && std::chrono::steady_clock::now() < end);

  ok &= same("counters", counters.download(), std::vector<unsigned>(count, launches));
  for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  std::printf("sleeper: %u launches\n", launches);
  return verdict("sleeper", ok);
}
