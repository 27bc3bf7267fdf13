// Moves elements of every size and alignment through device code: a type's size and alignment decide which memory access the compiler
// generates, from single bytes for a packed structure to one 16-byte load.
#include <random>

#include "bench.h"

struct Rgb8 {
  unsigned char r, g, b;
};
struct __align__(4) Rgba8 {
  unsigned char r, g, b, a;
};
struct Packed {
  unsigned int first;
  unsigned char second;
  unsigned short third[2];
} __attribute__((packed));
struct Three {
  float x, y, z;
};
struct __align__(8) Pair {
  unsigned int low, high;
};
struct __align__(16) Padded {
  float x, y, z;
};
struct __align__(16) Wide {
  unsigned long long words[4];
};

// Mirrors the array, so that every element is loaded and stored at another offset.
template <typename T>
__global__ void mirror(const T* from, T* to, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    to[count - 1 - i] = from[i];
}

// Compares the elements' first `used` bytes; the rest is padding.
template <typename T>
bool sameElements(const std::vector<T>& got, const std::vector<T>& want, size_t used) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (std::memcmp(&got[i], &want[i], used) != 0) return false;
  }
  return got.size() == want.size();
}

template <typename T>
class Case {
 public:
  Case(const char* name, size_t used, int count)
      : name(name), used(used), count(count), device(count), mirrored(count), host(count), result(count) {
    std::mt19937 generator(sizeof(T) * 100 + alignof(T));
    std::vector<uint32_t> words((count * sizeof(T) + 3) / 4);
    for (uint32_t& word : words) word = generator();
    std::memcpy(static_cast<void*>(host.data()), words.data(), count * sizeof(T));
    device.upload(host);
  }

  void run() {
    mirror<<<std::min(blocksFor(count, 128), 4096), 128>>>(static_cast<const T*>(device), static_cast<T*>(mirrored),
                                                           count);
    CHECK(cudaGetLastError());
  }

  // As the SDK sample does for each type: one copy in, many passes, one copy out.
  void runWithCopies(int passes) {
    device.copyIn(host);
    for (int i = 0; i < passes; ++i) run();
    mirrored.copyOut(result);
  }

  bool check() {
    mirrored.copyOut(result);
    const std::vector<T> expected(host.rbegin(), host.rend());
    if (sameElements(result, expected, used)) return true;
    std::fprintf(stderr, "%s: %zu bytes, aligned to %zu: elements differ\n", name, sizeof(T), alignof(T));
    return false;
  }

  // Appends the elements' bytes without padding.
  void appendResult(std::vector<unsigned char>& bytes) const {
    for (const T& element : result) {
      const auto* first = reinterpret_cast<const unsigned char*>(&element);
      bytes.insert(bytes.end(), first, first + used);
    }
  }

 private:
  const char* name;
  size_t used;
  int count;
  DeviceArray<T> device, mirrored;
  std::vector<T> host, result;
};

// Calls `work` with a case of `count` elements for every type.
template <typename Work>
int withCases(int count, Work work) {
  Case<unsigned char> bytes("unsigned char", 1, count);
  Case<unsigned short> shorts("unsigned short", 2, count);
  Case<float> floats("float", 4, count);
  Case<double> doubles("double", 8, count);
  Case<Rgb8> rgb8("Rgb8", 3, count);
  Case<Rgba8> rgba8("Rgba8", 4, count);
  Case<Packed> packed("Packed", 9, count);
  Case<Three> three("Three", 12, count);
  Case<Pair> pair("Pair", 8, count);
  Case<Padded> padded("Padded", 12, count);
  Case<Wide> wide("Wide", 32, count);
  Case<int4> int4s("int4", 16, count);
  Case<double2> double2s("double2", 16, count);
  return work(bytes, shorts, floats, doubles, rgb8, rgba8, packed, three, pair, padded, wide, int4s, double2s);
}

// 50 MB in all; the SDK sample has as much for each type.
int measure(const Bench& bench) {
  return withCases(bench.size(400003, 503), [&](auto&... all) {
    const int passes = bench.size(32, 1);
    bench.steady(10, [&] { (all.runWithCopies(passes), ...); });
    std::vector<unsigned char> bytes;
    (all.appendResult(bytes), ...);
    return bench.digest(bytes);
  });
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  return withCases(5003, [](auto&... all) {
    size_t index = 0;
    const auto run = [&](auto& next) {
      if (index++ == sizeof...(all) / 2) pausePoint();
      next.run();
    };
    (run(all), ...);
    return verdict("aligned-types", (all.check() & ...));
  });
}
