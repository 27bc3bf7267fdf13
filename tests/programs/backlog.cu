// Posts many launches into sixteen streams when the file argv[1] appears, so that a worker that is stopped meanwhile later finds them all
// in its ring. Each must run once, in its stream's order.
#include "program.h"

constexpr unsigned streams = 16, launches = 900;  // per stream; too few to block the program

struct Turns {
  unsigned ran, wrong;
};

__global__ void takeTurn(Turns* turns, unsigned turn) {
  if (turns->ran != turn) turns->wrong += 1;
  turns->ran += 1;
}

int main(int argc, char** argv) {
  DeviceArray<Turns> turns(std::vector<Turns>(streams, {0, 0}));
  cudaStream_t all[streams];
  for (cudaStream_t& stream : all) CHECK(cudaStreamCreate(&stream));
  takeTurn<<<1, 1, 0, all[0]>>>(turns, 0);  // so that the worker has loaded the kernel before it is stopped
  CHECK(cudaDeviceSynchronize());
  std::printf("backlog: ready\n");
  std::fflush(stdout);
  while (argc > 1 && access(argv[1], F_OK) != 0) usleep(10000);

  for (unsigned turn = 0; turn < launches; ++turn)
    for (unsigned i = 0; i < streams; ++i) takeTurn<<<1, 1, 0, all[i]>>>(turns + i, turn + (i == 0));
  CHECK(cudaGetLastError());
  pausePoint();
  CHECK(cudaDeviceSynchronize());

  bool ok = true;
  const auto got = turns.download();
  for (unsigned i = 0; i < streams; ++i) ok &= EXPECT(got[i].ran == launches + (i == 0)) & EXPECT(got[i].wrong == 0);
  for (cudaStream_t stream : all) CHECK(cudaStreamDestroy(stream));
  return verdict("backlog", ok);
}
