// Random programs: kernels, copies, fills, events and waits in several streams, some of them repeated, compared byte by byte with the
// same work executed in sequence on the CPU.
//   random-streams SEED PROGRAMS [FILE]
// Each program has its own seed, which is printed if it fails: `random-streams ITS_SEED 1` repeats it. With FILE the programs are
// repeated until it exists.
#include <array>
#include <cstring>
#include <random>

#include "program.h"

namespace {

constexpr int streams = 4, arrays = 12, words = 64;

__global__ void mix(uint32_t* to, const uint32_t* from, uint32_t factor) {
  to[threadIdx.x] = to[threadIdx.x] * factor + from[threadIdx.x];
}
__global__ void turn(uint32_t* to, uint32_t by) { to[threadIdx.x] = __funnelshift_l(to[threadIdx.x], to[threadIdx.x], by) + by; }
struct Many {
  uint32_t numbers[40];
};
__global__ void sum(uint32_t* to, Many many, int count) {
  for (int i = 0; i < count; ++i) to[threadIdx.x] += many.numbers[i] ^ threadIdx.x;
}

// An array of a random program: its address, its expected contents, and the stream that uses it now.
struct Array {
  uint32_t* data = nullptr;
  bool isPinned = false;
  std::vector<uint32_t> wanted = std::vector<uint32_t>(words);
  int stream = 0;
};

class RandomProgram {
 public:
  explicit RandomProgram(unsigned seed) : random(seed) {
    for (int i = 0; i < streams; ++i) {
      isBlocking[i] = pick(2) == 0;
      CHECK(cudaStreamCreateWithFlags(&made[i], isBlocking[i] ? cudaStreamDefault : cudaStreamNonBlocking));
    }
    if (pick(2) == 0) {
      CHECK(cudaStreamDestroy(made[0]));
      made[0] = nullptr;
    }
    for (auto& event : events) CHECK(cudaEventCreateWithFlags(&event, pick(2) ? cudaEventDisableTiming : cudaEventDefault));
    for (int i = 0; i < arrays; ++i) {
      all[i].isPinned = i >= arrays - 2;
      if (all[i].isPinned) {
        CHECK(cudaMallocHost(&all[i].data, words * sizeof(uint32_t)));
      } else {
        CHECK(cudaMalloc(&all[i].data, words * sizeof(uint32_t)));
      }
      all[i].stream = pick(streams);
      fill(all[i], pick(256), words * sizeof(uint32_t));
    }
  }
  ~RandomProgram() {
    for (auto& array : all) CHECK(array.isPinned ? cudaFreeHost(array.data) : cudaFree(array.data));
    for (auto event : events) CHECK(cudaEventDestroy(event));
    for (auto stream : made)
      if (stream != nullptr) CHECK(cudaStreamDestroy(stream));
  }

  void run(int steps, int pauseAt) {
    for (int step = 0; step < steps; ++step) {
      if (step == pauseAt) pausePoint();
      switch (pick(20)) {
        case 0: repeat(); break;
        case 1: CHECK(cudaStreamSynchronize(made[pick(streams)])); break;
        case 2: askStream(); break;
        case 3: CHECK(cudaEventRecord(events[pick(events.size())], made[pick(streams)])); break;
        case 4: CHECK(cudaStreamWaitEvent(made[pick(streams)], events[pick(events.size())], 0)); break;
        case 5: fillRows(all[pick(arrays - 2)]); break;
        case 6: CHECK(cudaEventSynchronize(events[pick(events.size())])); break;
        default: someWork(); break;
      }
    }
  }

  bool isRight() {
    CHECK(cudaDeviceSynchronize());
    bool ok = true;
    for (auto& array : all) {
      std::vector<uint32_t> got(words);
      CHECK(cudaMemcpy(got.data(), array.data, words * sizeof(uint32_t), cudaMemcpyDefault));
      ok &= same("an array", got, array.wanted);
    }
    return ok;
  }

 private:
  template <typename Count>
  Count pick(Count count) {
    return static_cast<Count>(random() % count);
  }

  // Whether work of the legacy default stream and of the other stream is ordered as it was enqueued.
  bool isOrdered(int legacy, int other) const { return made[legacy] == nullptr && isBlocking[other]; }

  // Moves the array's next use to `stream`, ordered behind its last one. The legacy default stream is ordered by itself, but only for work:
  // a record alone, in a stream without later work, waits for no other stream (580.159, H200).
  void move(Array& array, int stream, bool workFollows = false) {
    if (array.stream == stream) return;
    if (workFollows && (isOrdered(array.stream, stream) || isOrdered(stream, array.stream))) {
      array.stream = stream;
      return;
    }
    cudaEvent_t event = events[pick(events.size())];
    CHECK(cudaEventRecord(event, made[array.stream]));
    CHECK(cudaStreamWaitEvent(made[stream], event, 0));
    array.stream = stream;
  }

  void mixInto(Array& to, Array& from, uint32_t factor) {
    if (to.isPinned || from.isPinned) return copy(to, from, words * sizeof(uint32_t));
    move(from, to.stream, true);
    mix<<<1, words, 0, made[to.stream]>>>(to.data, from.data, factor);
    for (int i = 0; i < words; ++i) to.wanted[i] = to.wanted[i] * factor + from.wanted[i];
  }
  void turnBy(Array& to, uint32_t by) {
    if (to.isPinned) return;
    turn<<<1, words, 0, made[to.stream]>>>(to.data, by);
    for (auto& word : to.wanted) word = (word << (by % 32) | (by % 32 != 0 ? word >> (32 - by % 32) : 0)) + by;
  }
  void addMany(Array& to, int count) {
    if (to.isPinned) return;
    Many many;
    for (auto& number : many.numbers) number = random();
    sum<<<1, words, 0, made[to.stream]>>>(to.data, many, count);
    for (int i = 0; i < words; ++i)
      for (int j = 0; j < count; ++j) to.wanted[i] += many.numbers[j] ^ i;
  }
  void copy(Array& to, Array& from, size_t bytes) {
    if (&to == &from) return;
    move(from, to.stream, true);
    CHECK(cudaMemcpyAsync(to.data, from.data, bytes, cudaMemcpyDefault, made[to.stream]));
    std::memcpy(to.wanted.data(), from.wanted.data(), bytes);
  }
  void fill(Array& to, int value, size_t bytes) {
    CHECK(cudaMemsetAsync(to.data, value, bytes, made[to.stream]));
    std::memset(to.wanted.data(), value, bytes);
  }
  void fillRows(Array& to) {
    int value = pick(256);
    CHECK(cudaMemset2DAsync(to.data, 64, value, 8, 4, made[to.stream]));
    for (int row = 0; row < 4; ++row) std::memset(to.wanted.data() + 16 * row, value, 8);
  }
  void someWork() {
    Array &to = all[pick(arrays)], &from = all[pick(arrays)];
    if (pick(8) == 0) move(to, pick(streams));
    switch (pick(6)) {
      case 0: copy(to, from, 4 * (1 + pick(words))); break;
      case 1: fill(to, pick(256), 4 * (1 + pick(words))); break;
      case 2: addMany(to, pick(40)); break;
      case 3: turnBy(to, pick(32)); break;
      default: mixInto(to, from, pick(3)); break;
    }
  }
  // The same short sequence of work, repeated many times, as in a solver.
  void repeat() {
    struct Piece {
      int kind;
      Array *to, *from;
      uint32_t number;
    };
    std::vector<Piece> pieces(1 + pick(9));
    const bool isOneStream = pick(2) == 0;
    const int stream = pick(streams), times = 2 + pick(20);
    for (auto& piece : pieces) piece = {pick(4), &all[pick(arrays)], &all[pick(arrays)], pick(1000u)};
    for (auto& piece : pieces)
      if (isOneStream) move(*piece.to, stream), move(*piece.from, stream);
    for (int i = 0; i < times; ++i) {
      for (auto& [kind, to, from, number] : pieces) {
        switch (kind) {
          case 0: mixInto(*to, *from, number); break;
          case 1: turnBy(*to, number); break;
          case 2: copy(*to, *from, words * sizeof(uint32_t)); break;
          case 3: fill(*to, number % 256, 128); break;
        }
      }
      if (i % 4 == 3) CHECK(cudaEventRecord(events[0], made[stream]));
    }
  }
  void askStream() {
    cudaError_t state = cudaStreamQuery(made[pick(streams)]);
    if (state != cudaSuccess && state != cudaErrorNotReady) CHECK(state);
  }

  std::mt19937 random;
  std::array<cudaStream_t, streams> made;
  std::array<bool, streams> isBlocking;
  std::array<cudaEvent_t, 6> events;
  std::array<Array, arrays> all;
};

}  // namespace

int main(int argc, char** argv) {
  const unsigned first = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 1;
  const unsigned programs = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 20;
  const char* end = argc > 3 ? argv[3] : nullptr;
  bool ok = true;
  do {
    for (unsigned seed = first; seed < first + programs && ok; ++seed) {
      RandomProgram program(seed);
      program.run(100, seed == first ? 50 : -1);
      ok = program.isRight();
      if (!ok) std::fprintf(stderr, "program %u is wrong\n", seed);
    }
  } while (ok && end != nullptr && access(end, F_OK) != 0);
  return verdict("random-streams", ok);
}
