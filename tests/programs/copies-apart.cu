// A large copy that has completed returns although another thread's large copy still waits: here for the first thread's next step.
#include "await-flag.h"
#include "program.h"

#include <thread>

namespace {

constexpr size_t count = 4 << 20, copiesOfRound = 4;
constexpr int rounds = 60;

struct Streams {
  cudaStream_t copying, held;
  Streams() {
    CHECK(cudaStreamCreateWithFlags(&copying, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&held, cudaStreamNonBlocking));
  }
  ~Streams() {
    CHECK(cudaStreamDestroy(copying));
    CHECK(cudaStreamDestroy(held));
  }
};

}  // namespace

// The other thread's copy may begin at any moment during this one.
int main() {
  Streams streams;
  std::vector<int> written(count), read(count);
  DeviceArray<int> to(count), from(std::vector<int>(count, 5));
  bool ok = true;
  for (int round = 0; round < rounds; ++round) {
    if (round == rounds / 2) pausePoint();
    std::atomic<bool> mayGoOn{false};
    std::fill(read.begin(), read.end(), 0);
    CHECK(cudaLaunchHostFunc(streams.held, awaitFlag, &mayGoOn));
    std::thread other([&] {
      usleep(round % 20 * 400);
      CHECK(cudaMemcpyAsync(read.data(), from, count * sizeof(int), cudaMemcpyDeviceToHost, streams.held));
    });
    for (size_t copy = 0; copy < copiesOfRound; ++copy) {
      std::fill(written.begin(), written.begin() + 100, round);
      CHECK(cudaMemcpyAsync(to, written.data(), count * sizeof(int), cudaMemcpyHostToDevice, streams.copying));
    }
    mayGoOn = true;
    other.join();
    ok &= EXPECT(read.front() == 5 && read.back() == 5);
  }
  CHECK(cudaStreamSynchronize(streams.copying));
  ok &= EXPECT(to.download()[0] == rounds - 1);
  return verdict("copies-apart", ok);
}
