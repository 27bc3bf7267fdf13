// Copies to pageable memory, each of which its thread waits for in a stream that is held: those of another stream are made meanwhile, also
// while copies to the device have all staging memory that they get.
#include "await-flag.h"
#include "program.h"

#include <thread>

namespace {

constexpr size_t bytes = 16384, held = 12, posted = 250;
const std::vector<unsigned char> content(bytes, 0x77), written(700'000, 0x5a);

bool leavesOthersAlone() {
  // One flag for all: functions of the host run one after the other. The last stream is that of the copies to the device.
  std::vector<cudaStream_t> streams(held + 1);
  std::atomic<bool> mayGoOn{false};
  DeviceArray<unsigned char> memory(content), filled(bytes * posted), others(written.size());
  for (cudaStream_t& stream : streams) {
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaLaunchHostFunc(stream, awaitFlag, &mayGoOn));
  }
  for (size_t i = 0; i < posted; ++i)
    CHECK(cudaMemcpyAsync(filled + i * bytes, content.data(), bytes, cudaMemcpyHostToDevice, streams[held]));
  std::vector<std::vector<unsigned char>> got(held, std::vector<unsigned char>(bytes));
  std::vector<std::thread> threads;
  for (size_t i = 0; i < held; ++i)
    threads.emplace_back([&, i] { CHECK(cudaMemcpyAsync(got[i].data(), memory, bytes, cudaMemcpyDeviceToHost, streams[i])); });
  usleep(100'000);  // for their calls
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  std::vector<unsigned char> read(written.size());
  CHECK(cudaMemcpyAsync(others, written.data(), written.size(), cudaMemcpyHostToDevice, stream));
  CHECK(cudaMemcpyAsync(read.data(), others, read.size(), cudaMemcpyDeviceToHost, stream));
  CHECK(cudaStreamSynchronize(stream));
  bool ok = EXPECT(read == written);
  mayGoOn = true;
  for (std::thread& thread : threads) thread.join();
  streams.push_back(stream);
  for (cudaStream_t each : streams) {
    CHECK(cudaStreamSynchronize(each));
    CHECK(cudaStreamDestroy(each));
  }
  for (auto& each : got) ok &= EXPECT(each == content);
  return ok;
}

}  // namespace

int main() {
  bool ok = leavesOthersAlone();
  pausePoint();
  ok &= leavesOthersAlone();
  return verdict("held-copies-back", ok);
}
