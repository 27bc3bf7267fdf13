// Device memory of given contents and size, which is compared after the pause point with what the GPU would write again.
//
// contents KIND MIB: random, zeros, weights (bfloat16, normally distributed), pieces (random, in allocations of 1 MiB).
// contents --serve KIND MIB: for tests/bench/snapshot-figures. Launches one kernel after another, and prints "tick TIME" when one that
// took longer than 20 ms has ended; executes the commands on standard input, one per line: change (one 2 MiB piece in a hundred),
// verify, quit.
#include <poll.h>

#include <cstring>
#include <ctime>
#include <memory>
#include <string>

#include "program.h"

namespace {

constexpr size_t mebibyte = size_t{1} << 20, changedBytes = 2 * mebibyte, changedOf = 100;
constexpr size_t wordsOfMebibyte = mebibyte / sizeof(uint64_t);

enum class Content { random, zeros, weights };

__host__ __device__ uint64_t mixed(uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9ull;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebull;
  return number ^ (number >> 31);
}

// Makes a normally distributed bfloat16 with standard deviation 0.02 from 32 random bits.
__device__ uint64_t weight(uint32_t bits) {
  float radius = sqrtf(-2.0f * logf(((bits >> 16) + 1) / 65536.0f)), angle = 6.2831853f * ((bits & 0xffff) / 65536.0f);
  return __float_as_uint(0.02f * radius * cosf(angle)) >> 16;
}

// The contents of word `index` of the whole memory in its `version`.
__device__ uint64_t wordOf(Content content, uint64_t index, uint64_t version) {
  if (content == Content::zeros) return version;
  uint64_t first = mixed(2 * index + (version << 48)), second = mixed(2 * index + 1 + (version << 48));
  if (content == Content::random) return first;
  return weight(static_cast<uint32_t>(first)) | weight(static_cast<uint32_t>(first >> 32)) << 16 |
         weight(static_cast<uint32_t>(second)) << 32 | weight(static_cast<uint32_t>(second >> 32)) << 48;
}

__global__ void fill(uint64_t* words, size_t count, uint64_t start, Content content, uint64_t version) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * size_t{blockDim.x})
    words[i] = wordOf(content, start + i, version);
}

__global__ void compare(const uint64_t* words, size_t count, uint64_t start, Content content, uint64_t version,
                        unsigned long long* wrong) {
  for (size_t i = blockIdx.x * size_t{blockDim.x} + threadIdx.x; i < count; i += gridDim.x * size_t{blockDim.x})
    if (words[i] != wordOf(content, start + i, version)) atomicAdd(wrong, 1ull);
}

__global__ void tick(unsigned long long* counter) { ++*counter; }

class Memory {
 public:
  Memory(Content content, size_t mebibytes, size_t pieceMebibytes) : content(content), counters(2) {
    counters.upload({0, 0});
    for (size_t done = 0; done < mebibytes; done += pieceMebibytes)
      pieces.push_back(std::make_unique<DeviceArray<uint64_t>>(std::min(pieceMebibytes, mebibytes - done) * wordsOfMebibyte));
    wordsOfPiece = pieceMebibytes * wordsOfMebibyte;
    words = mebibytes * wordsOfMebibyte;
    versions.resize((words * sizeof(uint64_t) + changedBytes - 1) / changedBytes);
    forRuns([&](uint64_t* at, size_t count, uint64_t start, uint64_t version) { fill<<<256, 256>>>(at, count, start, this->content, version); });
    CHECK(cudaDeviceSynchronize());
  }

  // Rewrites every hundredth piece of 2 MiB.
  void change() {
    for (size_t part = 0; part < versions.size(); part += changedOf) ++versions[part];
    forRuns([&](uint64_t* at, size_t count, uint64_t start, uint64_t version) {
      if (version > 0) fill<<<64, 256>>>(at, count, start, content, version);
    });
    CHECK(cudaDeviceSynchronize());
  }

  // How many words differ from what was written.
  unsigned long long verify() {
    counters.upload({0, 0});
    forRuns([&](uint64_t* at, size_t count, uint64_t start, uint64_t version) {
      compare<<<256, 256>>>(at, count, start, content, version, counters);
    });
    return counters.download()[0];
  }

  void runTick() {
    tick<<<1, 1>>>(counters + 1);
    CHECK(cudaDeviceSynchronize());
  }

 private:
  // Calls `visit` for runs of words that are contiguous and have one version.
  template <typename Visit>
  void forRuns(Visit visit) {
    constexpr size_t partWords = changedBytes / sizeof(uint64_t);
    for (size_t start = 0; start < words;) {
      size_t part = start / partWords, end = std::min(words, (start / wordsOfPiece + 1) * wordsOfPiece), last = part;
      while (last + 1 < versions.size() && (last + 1) * partWords < end && versions[last + 1] == versions[part]) ++last;
      end = std::min(end, (last + 1) * partWords);
      visit(*pieces[start / wordsOfPiece] + start % wordsOfPiece, end - start, start, versions[part]);
      start = end;
    }
  }

  const Content content;
  DeviceArray<unsigned long long> counters;
  std::vector<std::unique_ptr<DeviceArray<uint64_t>>> pieces;
  size_t words = 0, wordsOfPiece = 0;
  std::vector<uint64_t> versions;  // of each piece of 2 MiB
};

double timeNow() {
  timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  return double(time.tv_sec) + 1e-9 * double(time.tv_nsec);
}

bool commandIsThere() {
  pollfd input{0, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

// False at the end of input.
bool obey(Memory& memory) {
  char line[64];
  if (!std::fgets(line, sizeof line, stdin) || std::strcmp(line, "quit\n") == 0) return false;
  if (std::strcmp(line, "change\n") == 0) {
    memory.change();
    std::printf("changed\n");
  } else if (std::strcmp(line, "verify\n") == 0) {
    std::printf("wrong %llu\n", memory.verify());
  }
  return true;
}

void serve(Memory& memory) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  std::setvbuf(stdin, nullptr, _IONBF, 0);  // buffering would hide a second command from poll()
  std::printf("ready %d\n", static_cast<int>(getpid()));
  for (double before = timeNow();;) {
    if (commandIsThere()) {
      if (!obey(memory)) return;
      before = timeNow();
    }
    memory.runTick();
    double now = timeNow();
    if (now - before > 0.02) std::printf("tick %.6f\n", now);
    before = now;
    usleep(500);
  }
}

}  // namespace

int main(int count, char** arguments) {
  bool serves = count > 1 && std::strcmp(arguments[1], "--serve") == 0;
  if (count < (serves ? 4 : 3)) return 2;
  std::string kind = arguments[serves ? 2 : 1];
  size_t mebibytes = std::strtoull(arguments[serves ? 3 : 2], nullptr, 10);
  Content content = kind == "zeros" ? Content::zeros : kind == "weights" ? Content::weights : Content::random;
  Memory memory(content, mebibytes, kind == "pieces" ? 1 : 1024);
  if (serves) {
    serve(memory);
    return 0;
  }
  pausePoint();
  bool ok = memory.verify() == 0;
  memory.change();
  return verdict("contents", ok && memory.verify() == 0);
}
