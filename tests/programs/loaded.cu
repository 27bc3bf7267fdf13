// A program that loads much data before its first result, like one that serves a model: it reads FILE into device memory, prints an
// answer at once, and then repeatedly until STOP exists. Its state is equally large on the GPU and on the host; each answer multiplies it
// by 3. An answer is a weighted sum of FILE's words plus the sums of both states, modulo 2^32, which reveals a wrong byte, or a step
// that was lost or repeated. It is printed with its time in seconds since 1970.
//
//   loaded [FILE [STATE-MIB [STOP]]]    without FILE it uses 8 MiB of its own; without STOP it ends after its pause point
#include "program.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

namespace {

constexpr unsigned blocks = 1024, threads = 256;
constexpr size_t pieceWords = 4 << 20;  // of FILE, read at once
constexpr uint32_t factor = 3;

__device__ __host__ uint32_t weightOf(size_t i) { return static_cast<uint32_t>(2 * i + 1); }

__global__ void weigh(const uint32_t* words, size_t count, uint32_t* sum) {
  uint32_t mine = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * size_t{blockDim.x})
    mine += words[i] * weightOf(i);
  atomicAdd(sum, mine);
}

__global__ void multiply(uint32_t* words, size_t count, uint32_t* sum) {
  uint32_t mine = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * size_t{blockDim.x})
    mine += words[i] *= factor;
  atomicAdd(sum, mine);
}

// Device memory with the words of FILE, or with generated numbers without one.
class Model {
 public:
  Model(const char* path, size_t count) : count(count) {
    std::FILE* file = path ? std::fopen(path, "rb") : nullptr;
    if (path && !file) {
      std::perror(path);
      std::exit(2);
    }
    uint32_t* piece = nullptr;
    CHECK(cudaMallocHost(&piece, pieceWords * sizeof(uint32_t)));
    CHECK(cudaMalloc(&words, count * sizeof(uint32_t)));
    for (size_t at = 0; at < count; at += pieceWords) {
      const size_t part = std::min(pieceWords, count - at);
      if (!file) {
        for (size_t i = 0; i < part; ++i) piece[i] = static_cast<uint32_t>((at + i) * 2654435761u + 1);
      } else if (std::fread(piece, sizeof(uint32_t), part, file) != part) {
        std::fprintf(stderr, "%s ends early\n", path);
        std::exit(2);
      }
      for (size_t i = 0; i < part; ++i) expected += piece[i] * weightOf(at + i);
      CHECK(cudaMemcpy(words + at, piece, part * sizeof(uint32_t), cudaMemcpyHostToDevice));
    }
    CHECK(cudaFreeHost(piece));
    if (file) std::fclose(file);
  }
  ~Model() { CHECK(cudaFree(words)); }

  uint32_t sum() const {
    DeviceArray<uint32_t> sum(std::vector<uint32_t>(1));
    weigh<<<blocks, threads>>>(words, count, sum);
    CHECK(cudaGetLastError());
    return sum.download()[0];
  }
  uint32_t expected = 0;

 private:
  size_t count;
  uint32_t* words = nullptr;
};

class State {
 public:
  explicit State(size_t count) : host(count), device(count) {
    for (size_t i = 0; i < count; ++i) expected += host[i] = static_cast<uint32_t>(i * 2246822519u + 1);
    device.upload(host);
  }
  // Advances both states; returns their sums.
  std::pair<uint32_t, uint32_t> next() {
    DeviceArray<uint32_t> sum(std::vector<uint32_t>(1));
    multiply<<<blocks, threads>>>(device, host.size(), sum);
    CHECK(cudaGetLastError());
    uint32_t ofHost = 0;
    for (uint32_t& word : host) ofHost += word *= factor;
    expected *= factor;
    return {sum.download()[0], ofHost};
  }
  uint32_t expected = 0;

 private:
  std::vector<uint32_t> host;
  DeviceArray<uint32_t> device;
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

bool answer(const Model& model, State& state, size_t number) {
  const uint32_t sum = model.sum();
  const auto [onDevice, onHost] = state.next();
  std::printf("answer %zu at %.3f: %u %u %u\n", number, now(), sum, onDevice, onHost);
  std::fflush(stdout);
  return EXPECT(sum == model.expected) & EXPECT(onDevice == state.expected) & EXPECT(onHost == state.expected);
}

}  // namespace

int main(int count, char** arguments) {
  const char* path = count > 1 ? arguments[1] : nullptr;
  const size_t mebibytes = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 4;
  const char* stop = count > 3 ? arguments[3] : nullptr;
  struct stat about {};
  about.st_size = 8 << 20;
  if (path && stat(path, &about) != 0) {
    std::perror(path);
    return 2;
  }
  const Model model(path, static_cast<size_t>(about.st_size) / sizeof(uint32_t));
  State state(mebibytes << 18);
  size_t number = 0;
  bool ok = answer(model, state, ++number);
  pausePoint();
  do {
    ok &= answer(model, state, ++number);
  } while (ok && stop && access(stop, F_OK) != 0);
  return verdict("loaded", ok);
}
