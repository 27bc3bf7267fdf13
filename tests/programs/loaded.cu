// A program that loads much before it answers, like one that serves a model: it reads FILE into device memory and has host memory
// too, and answers at once, and then again and again until STOP exists. An answer multiplies all that it has by 3, on the GPU and
// on the CPU, and is the sum of each, modulo 2^32: a step that is lost or done twice shows in all sums from then on. Beside it is
// the time at which it was there, in seconds since 1970.
//
//   loaded [FILE [HOST-MIB [STOP]]]    without FILE 8 MiB that it makes; without STOP it ends after its pause point
#include "program.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>

namespace {

constexpr unsigned blocks = 1024, threads = 256;
constexpr size_t pieceWords = 4 << 20;  // of FILE, read at once
constexpr uint32_t factor = 3;

__global__ void multiplyAndAddUp(uint32_t* words, size_t count, uint32_t* sum) {
  uint32_t mine = 0;
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * size_t{blockDim.x})
    mine += words[i] *= factor;
  atomicAdd(sum, mine);
}

class DeviceWords {
 public:
  DeviceWords(const char* path, size_t count) : count(count) {
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
      for (size_t i = 0; i < part; ++i) expected += piece[i];
      CHECK(cudaMemcpy(words + at, piece, part * sizeof(uint32_t), cudaMemcpyHostToDevice));
    }
    CHECK(cudaFreeHost(piece));
    if (file) std::fclose(file);
  }
  ~DeviceWords() { CHECK(cudaFree(words)); }

  uint32_t next() {
    DeviceArray<uint32_t> sum(std::vector<uint32_t>(1));
    multiplyAndAddUp<<<blocks, threads>>>(words, count, sum);
    CHECK(cudaGetLastError());
    expected *= factor;
    return sum.download()[0];
  }
  uint32_t expected = 0;

 private:
  size_t count;
  uint32_t* words = nullptr;
};

class HostWords {
 public:
  explicit HostWords(size_t count) : words(count) {
    for (size_t i = 0; i < count; ++i) expected += words[i] = static_cast<uint32_t>(i * 2246822519u + 1);
  }
  uint32_t next() {
    uint32_t sum = 0;
    for (uint32_t& word : words) sum += word *= factor;
    expected *= factor;
    return sum;
  }
  uint32_t expected = 0;

 private:
  std::vector<uint32_t> words;
};

double now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

bool answer(DeviceWords& device, HostWords& host, size_t number) {
  const uint32_t ofDevice = device.next(), ofHost = host.next();
  std::printf("answer %zu at %.3f: %u %u\n", number, now(), ofDevice, ofHost);
  std::fflush(stdout);
  return EXPECT(ofDevice == device.expected) & EXPECT(ofHost == host.expected);
}

}  // namespace

int main(int count, char** arguments) {
  const char* path = count > 1 ? arguments[1] : nullptr;
  const size_t hostMebibytes = count > 2 ? std::strtoull(arguments[2], nullptr, 10) : 4;
  const char* stop = count > 3 ? arguments[3] : nullptr;
  struct stat about {};
  about.st_size = 8 << 20;
  if (path && stat(path, &about) != 0) {
    std::perror(path);
    return 2;
  }
  DeviceWords device(path, static_cast<size_t>(about.st_size) / sizeof(uint32_t));
  HostWords host(hostMebibytes << 18);
  size_t number = 0;
  bool ok = answer(device, host, ++number);
  pausePoint();
  do {
    ok &= answer(device, host, ++number);
  } while (ok && stop && access(stop, F_OK) != 0);
  return verdict("loaded", ok);
}
