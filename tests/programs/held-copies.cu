// Copies of pageable memory to the device behind held work: as many as CUDA accepts in a stream return at once, and copies in other streams
// and threads, in both directions, proceed meanwhile. The call that ends the hold may come behind them. Also copies within host memory.
#include "await-flag.h"
#include "program.h"

#include <thread>

namespace {

unsigned char byteOf(size_t copy) { return static_cast<unsigned char>(copy * 7 + 3); }

// Streams that are held by one flag.
struct Held {
  std::vector<cudaStream_t> streams;
  std::atomic<bool> mayGoOn{false};
  explicit Held(size_t count = 1) : streams(count) {
    for (cudaStream_t& stream : streams) {
      CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
      CHECK(cudaLaunchHostFunc(stream, awaitFlag, &mayGoOn));
    }
  }
  ~Held() {
    for (cudaStream_t stream : streams) CHECK(cudaStreamDestroy(stream));
  }
  void goOn() {
    mayGoOn = true;
    for (cudaStream_t stream : streams) CHECK(cudaStreamSynchronize(stream));
  }
};

// Copies of different bytes from one buffer, which is overwritten as soon as a call returns.
struct Copies {
  size_t bytes, count;
  DeviceArray<unsigned char> to;
  std::vector<unsigned char> from;
  Copies(size_t bytes, size_t count) : bytes(bytes), count(count), to(bytes * count), from(bytes) {}
  void post(size_t copy, cudaStream_t stream) {
    std::fill(from.begin(), from.end(), byteOf(copy));
    CHECK(cudaMemcpyAsync(to + copy * bytes, from.data(), bytes, cudaMemcpyHostToDevice, stream));
  }
  bool haveArrived() const {
    const std::vector<unsigned char> got = to.download();
    for (size_t i = 0; i < got.size(); ++i)
      if (got[i] != byteOf(i / bytes)) return EXPECT(got[i] == byteOf(i / bytes));
    return true;
  }
};

bool fillsOneStream(size_t bytes, size_t count) {
  Held held;
  Copies copies(bytes, count);
  for (size_t copy = 0; copy < count; ++copy) copies.post(copy, held.streams[0]);
  held.goOn();
  return copies.haveArrived();
}

// Another thread's copies in another stream, of every size and in both directions, with 700,000 bytes at `memory`.
bool othersGoOn(unsigned char* memory) {
  bool ok = true;
  std::thread([&] {
    CHECK(cudaSetDevice(0));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    for (size_t size : {size_t{5000}, size_t{16384}, size_t{65536}, size_t{700'000}}) {
      std::vector<unsigned char> written(size, 0x5a), read(size);
      CHECK(cudaMemcpyAsync(memory, written.data(), size, cudaMemcpyHostToDevice, stream));
      CHECK(cudaMemcpyAsync(read.data(), memory, size, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      ok &= read == written;
    }
    CHECK(cudaStreamDestroy(stream));
  }).join();
  return EXPECT(ok);
}

// With a pitch on the device: such a copy is not one row.
bool fillsOneStreamWithRows() {
  constexpr size_t width = 600, rows = 20, pitch = 1024, count = 80;
  Held held;
  DeviceArray<unsigned char> to(pitch * rows * count), others(700'000);
  CHECK(cudaMemset(to, 1, pitch * rows * count));
  std::vector<unsigned char> from(width * rows);
  for (size_t copy = 0; copy < count; ++copy) {
    for (size_t i = 0; i < from.size(); ++i) from[i] = byteOf(copy + i / width);
    CHECK(cudaMemcpy2DAsync(to + copy * rows * pitch, pitch, from.data(), width, width, rows, cudaMemcpyHostToDevice,
                            held.streams[0]));
  }
  bool ok = othersGoOn(others);
  held.goOn();
  const std::vector<unsigned char> got = to.download();
  for (size_t i = 0; i < got.size(); ++i)
    ok &= got[i] == (i % pitch < width ? byteOf(i / pitch / rows + i / pitch % rows) : 1);
  return EXPECT(ok);
}

// The call that ends the hold comes behind other threads' copies, here in several held streams.
bool leavesOthersAlone(size_t heldStreams, size_t bytes, size_t countOfStream) {
  Held held(heldStreams);
  Copies copies(bytes, heldStreams * countOfStream);
  DeviceArray<unsigned char> others(700'000);  // a free would wait for held work
  for (size_t stream = 0, copy = 0; stream < heldStreams; ++stream)
    for (size_t i = 0; i < countOfStream; ++i, ++copy) copies.post(copy, held.streams[stream]);
  const bool ok = othersGoOn(others);
  held.goOn();
  return ok & copies.haveArrived();
}

// A copy between pinned and pageable memory, in both directions, in a blocking stream behind held work of the legacy default stream.
bool comesBehindLegacy() {
  unsigned char* pinned;
  CHECK(cudaMallocHost(&pinned, 2));
  pinned[0] = pinned[1] = 1;
  cudaStream_t blocking;
  CHECK(cudaStreamCreate(&blocking));
  std::atomic<bool> mayGoOn{false};
  CHECK(cudaLaunchHostFunc(cudaStreamLegacy, awaitFlag, &mayGoOn));
  CHECK(cudaMemsetAsync(pinned, 5, 2, cudaStreamLegacy));
  unsigned char got = 0, mine = 7;
  std::thread out([&] { CHECK(cudaMemcpyAsync(&got, pinned, 1, cudaMemcpyDefault, blocking)); });
  std::thread in([&] { CHECK(cudaMemcpyAsync(pinned + 1, &mine, 1, cudaMemcpyDefault, cudaStreamPerThread)); });
  DeviceArray<unsigned char> others(700'000);
  bool ok = true;
  for (int i = 0; i < 20; ++i) ok &= othersGoOn(others);
  mayGoOn = true;
  out.join();
  in.join();
  CHECK(cudaDeviceSynchronize());
  ok &= EXPECT(got == 5) & EXPECT(pinned[1] == 7);
  CHECK(cudaStreamDestroy(blocking));
  CHECK(cudaFreeHost(pinned));
  return ok;
}

}  // namespace

int main() {
  bool ok = fillsOneStream(4096, 900) & fillsOneStream(16384, 250) & fillsOneStream(48 << 10, 84) & fillsOneStream(65536, 63) &
            fillsOneStream(100'000, 2) & fillsOneStreamWithRows() & comesBehindLegacy();
  pausePoint();
  // More held streams than these may block others by themselves (docs/ring.md, Connections).
  ok &= leavesOthersAlone(1, 16384, 250) & leavesOthersAlone(4, 65536, 20) & leavesOthersAlone(2, 1'000'000, 2);
  return verdict("held-copies", ok);
}
