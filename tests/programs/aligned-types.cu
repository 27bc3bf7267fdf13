// Moves elements of every size and alignment through device code: the access that a compiler chooses for a type depends
// on both, from single bytes for a packed structure to one 16-byte load.
#include "program.h"

#include <cstring>

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

// Whether the elements are the same in their first `used` bytes; what lies behind is padding and nobody's.
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
  Case(const char* name, size_t used) : name(name), used(used), device(count), mirrored(count), host(count) {
    std::mt19937 generator(sizeof(T) * 100 + alignof(T));
    std::vector<unsigned char> bytes(count * sizeof(T));
    for (unsigned char& byte : bytes) byte = generator();
    std::memcpy(static_cast<void*>(host.data()), bytes.data(), bytes.size());
    device.upload(host);
  }

  void run() {
    mirror<<<7, 128>>>(static_cast<const T*>(device), static_cast<T*>(mirrored), count);
    CHECK(cudaGetLastError());
  }

  bool check() const {
    const std::vector<T> expected(host.rbegin(), host.rend());
    if (sameElements(mirrored.download(), expected, used)) return true;
    std::fprintf(stderr, "%s: %zu bytes, aligned to %zu: elements differ\n", name, sizeof(T), alignof(T));
    return false;
  }

 private:
  static constexpr int count = 5003;
  const char* name;
  size_t used;
  DeviceArray<T> device, mirrored;
  std::vector<T> host;
};

int main() {
  Case<unsigned char> bytes("unsigned char", 1);
  Case<unsigned short> shorts("unsigned short", 2);
  Case<float> floats("float", 4);
  Case<double> doubles("double", 8);
  Case<Rgb8> rgb8("Rgb8", 3);
  Case<Rgba8> rgba8("Rgba8", 4);
  Case<Packed> packed("Packed", 9);
  Case<Three> three("Three", 12);
  Case<Pair> pair("Pair", 8);
  Case<Padded> padded("Padded", 12);
  Case<Wide> wide("Wide", 32);
  Case<int4> int4s("int4", 16);
  Case<double2> double2s("double2", 16);

  const auto runAll = [](auto&... all) { (all.run(), ...); };
  const auto checkAll = [](auto&... all) { return (all.check() & ...); };
  runAll(bytes, shorts, floats, doubles, rgb8, rgba8, packed);
  pausePoint();
  runAll(three, pair, padded, wide, int4s, double2s);
  const bool ok =
      checkAll(bytes, shorts, floats, doubles, rgb8, rgba8, packed, three, pair, padded, wide, int4s, double2s);
  return verdict("aligned-types", ok);
}
