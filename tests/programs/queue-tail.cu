// Posts two thousand launches faster than the device runs them and pauses at once, so that most of them are still queued
// at the pause point. Each must run once, in order.
//   queue-tail [SPINS]: how long each of them runs
#include "program.h"

constexpr unsigned launches = 2000;

// The launches' record: how many ran, and how many of them ran out of order.
struct Turns {
  unsigned ran, wrong, spun;
};

__global__ void takeTurn(Turns* turns, unsigned turn, unsigned spins) {
  unsigned value = turns->spun;
  for (unsigned i = 0; i < spins; ++i) value = value * 1664525 + 1013904223;
  turns->spun = value;
  if (turns->ran != turn) turns->wrong += 1;
  turns->ran += 1;
}

int main(int argc, char** argv) {
  DeviceArray<Turns> turns(std::vector<Turns>{{0, 0, 1}});
  cudaStream_t stream;
  CHECK(cudaStreamCreate(&stream));
  const unsigned spins = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 300;
  for (unsigned turn = 0; turn < launches; ++turn) takeTurn<<<1, 1, 0, stream>>>(turns, turn, spins);
  CHECK(cudaGetLastError());
  pausePoint();
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));

  unsigned spun = 1;
  for (unsigned i = 0; i < launches * spins; ++i) spun = spun * 1664525 + 1013904223;
  const Turns got = turns.download()[0];
  return verdict("queue-tail", EXPECT(got.ran == launches) & EXPECT(got.wrong == 0) & EXPECT(got.spun == spun));
}
