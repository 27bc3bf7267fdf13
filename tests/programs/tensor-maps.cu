// Copies of tensor boxes: with every number of dimensions, in every swizzle, across the tensor's edges, as reductions, of image pixels
// (im2col), and to several blocks at once; and invalid tensor maps. Compared with the same copies on the CPU. With the argument
// `unaligned`, `before` or `added-before`: a copy whose coordinates fault.
#include <cstring>

#include "hopper.h"

constexpr int most = 5, threads = 128;
struct Places {
  int of[most];
  __host__ __device__ int& operator[](int i) { return of[i]; }
  __host__ __device__ const int& operator[](int i) const { return of[i]; }
};

// A copy from and to tensors of the same shape.
struct Copy {
  int rank;
  Places load, store, filter;  // coordinates; offsets of pixels
  unsigned bytes;              // of the box
  int mode;                    // of Mode
};
enum Mode { tiled, added, pixels };

constexpr unsigned room = 32 * 1024;

// One thread loads a box and stores it elsewhere; all threads write out the block's shared memory.
template <int Rank>
__device__ void load(void* to, const CUtensorMap* map, const Places& at, const Places& filter, bool ofPixels, uint64_t* barrier) {
  const uint32_t target = sharedAddress(to), bar = sharedAddress(barrier);
  const int* c = at.of;
  const auto f0 = static_cast<uint16_t>(filter[0]), f1 = static_cast<uint16_t>(filter[1]);
#define LOAD(dimensions, places, ...)                                                                                     \
  asm volatile("cp.async.bulk.tensor." dimensions                                                                         \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" places "}], [%2];" ::"r"(target), \
               "l"(map), "r"(bar), __VA_ARGS__                                                                            \
               : "memory")
  if constexpr (Rank == 1) LOAD("1d", "%3", "r"(c[0]));
  if constexpr (Rank == 2) LOAD("2d", "%3, %4", "r"(c[0]), "r"(c[1]));
  if constexpr (Rank == 3) LOAD("3d", "%3, %4, %5", "r"(c[0]), "r"(c[1]), "r"(c[2]));
  if constexpr (Rank == 5) LOAD("5d", "%3, %4, %5, %6, %7", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]));
  if constexpr (Rank == 4) {
    if (!ofPixels) {
      LOAD("4d", "%3, %4, %5, %6", "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]));
      return;
    }
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6}], [%2], "
        "{%7, %8};" ::"r"(target),
        "l"(map), "r"(bar), "r"(c[0]), "r"(c[1]), "r"(c[2]), "r"(c[3]), "h"(f0), "h"(f1)
        : "memory");
  }
#undef LOAD
}

template <int Rank>
__device__ void store(const CUtensorMap* map, const Places& at, const void* from, bool adds) {
  const uint32_t source = sharedAddress(from);
  const int* c = at.of;
#define STORE(operation, dimensions, places, ...) \
  asm volatile(operation dimensions places ::"l"(map), "r"(source), __VA_ARGS__ : "memory")
  if constexpr (Rank == 1)
    STORE("cp.async.bulk.tensor.", "1d.global.shared::cta.tile.bulk_group", " [%0, {%2}], [%1];", "r"(c[0]));
  if constexpr (Rank == 2) {
    if (adds)
      STORE("cp.reduce.async.bulk.tensor.", "2d.global.shared::cta.add.tile.bulk_group", " [%0, {%2, %3}], [%1];", "r"(c[0]),
            "r"(c[1]));
    else
      STORE("cp.async.bulk.tensor.", "2d.global.shared::cta.tile.bulk_group", " [%0, {%2, %3}], [%1];", "r"(c[0]), "r"(c[1]));
  }
  if constexpr (Rank == 3)
    STORE("cp.async.bulk.tensor.", "3d.global.shared::cta.tile.bulk_group", " [%0, {%2, %3, %4}], [%1];", "r"(c[0]), "r"(c[1]),
          "r"(c[2]));
  if constexpr (Rank == 4)
    STORE("cp.async.bulk.tensor.", "4d.global.shared::cta.tile.bulk_group", " [%0, {%2, %3, %4, %5}], [%1];", "r"(c[0]),
          "r"(c[1]), "r"(c[2]), "r"(c[3]));
  if constexpr (Rank == 5)
    STORE("cp.async.bulk.tensor.", "5d.global.shared::cta.tile.bulk_group", " [%0, {%2, %3, %4, %5, %6}], [%1];", "r"(c[0]),
          "r"(c[1]), "r"(c[2]), "r"(c[3]), "r"(c[4]));
#undef STORE
}

template <int Rank>
__global__ void copyBox(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, Copy copy,
                        unsigned* seen) {
  __shared__ __align__(1024) unsigned box[room / 4];
  __shared__ uint64_t barrier;
  for (unsigned i = threadIdx.x; i < room / 4; i += threads) box[i] = 0;
  publishShared();
  if (threadIdx.x == 0) {
    initBarrier(&barrier, 1);
    publishBarriers();
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    arriveExpecting(&barrier, copy.bytes);
    load<Rank>(box, &from, copy.load, copy.filter, copy.mode == pixels, &barrier);
  }
  waitFor(&barrier, 0);
  for (unsigned i = threadIdx.x; i < room / 4; i += threads) seen[i] = box[i];
  if (threadIdx.x == 0 && copy.mode != pixels) {
    store<Rank>(&to, copy.store, box, copy.mode == added);
    commitCopies();
    waitForCopies();
  }
}

struct Tensor {
  int rank;
  Places extents, box, steps;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  size_t count() const {
    size_t elements = 1;
    for (int i = 0; i < rank; ++i) elements *= static_cast<size_t>(extents[i]);
    return elements;
  }
};

// A tensor's dimensions as the driver expects them, dense, with elements of that many bytes.
struct Shape {
  cuuint64_t extents[most], strides[most];
  cuuint32_t box[most], steps[most];
  template <typename AnyTensor>
  Shape(const AnyTensor& tensor, cuuint64_t elementBytes) {
    cuuint64_t stride = elementBytes;
    for (int i = 0; i < tensor.rank; ++i) {
      extents[i] = static_cast<cuuint64_t>(tensor.extents[i]);
      strides[i] = stride *= extents[i];
      box[i] = static_cast<cuuint32_t>(tensor.box[i]);
      steps[i] = static_cast<cuuint32_t>(tensor.steps[i]);
    }
  }
};

CUresult encode(CUtensorMap* map, const Tensor& tensor, void* data) {
  const Shape of(tensor, sizeof(unsigned));
  return driverEntry<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
      map, CU_TENSOR_MAP_DATA_TYPE_UINT32, static_cast<cuuint32_t>(tensor.rank), data, of.extents, of.strides, of.box, of.steps,
      CU_TENSOR_MAP_INTERLEAVE_NONE, tensor.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

CUtensorMap mapOf(const Tensor& tensor, void* data) {
  alignas(64) CUtensorMap map;
  const CUresult result = encode(&map, tensor, data);
  if (result == CUDA_SUCCESS) return map;
  std::fprintf(stderr, "cuTensorMapEncodeTiled gave %d\n", static_cast<int>(result));
  std::exit(1);
}

std::vector<unsigned> numbered(size_t count) {
  std::vector<unsigned> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<unsigned>(i + 1);
  return values;
}

// Calls each(number, index) for the elements of a box at `at`; the index is -1 outside of the tensor.
template <typename F>
void forBox(const Tensor& tensor, const Places& at, F each) {
  Places counts{}, in{};
  size_t total = 1;
  for (int i = 0; i < tensor.rank; ++i)
    total *= static_cast<size_t>(counts[i] = (tensor.box[i] + tensor.steps[i] - 1) / tensor.steps[i]);
  for (size_t number = 0; number < total; ++number) {
    long index = 0, scale = 1;
    for (int i = 0; i < tensor.rank; ++i) {
      const int place = at[i] + in[i] * tensor.steps[i];
      if (place < 0 || place >= tensor.extents[i]) index = -1;
      if (index >= 0) index += place * scale;
      scale *= tensor.extents[i];
    }
    each(number, index);
    for (int i = 0; i < tensor.rank && ++in[i] == counts[i]; ++i) in[i] = 0;
  }
}

// The position of a byte of the box after swizzling.
size_t swizzledByte(CUtensorMapSwizzle swizzle, size_t byte) {
  const size_t units = swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 1 : size_t{1} << static_cast<int>(swizzle);
  return byte ^ (byte / 128 % units * 16);
}

template <int Rank>
bool copies(const Tensor& tensor, Places at, Places to, Mode mode) {
  const std::vector<unsigned> values = numbered(tensor.count());
  DeviceArray<unsigned> source(values), target(std::vector<unsigned>(tensor.count(), 7)), seen(room / 4);
  std::vector<unsigned> boxes(room / 4), stored(tensor.count(), 7), taken;
  unsigned bytes = 0;
  forBox(tensor, at, [&](size_t number, long index) {
    taken.push_back(index < 0 ? 0 : values[static_cast<size_t>(index)]);
    boxes[swizzledByte(tensor.swizzle, number * 4) / 4] = taken.back();
    bytes += 4;
  });
  forBox(tensor, to, [&](size_t number, long index) {
    if (index >= 0) stored[static_cast<size_t>(index)] = taken[number] + (mode == added ? 7 : 0);
  });
  copyBox<Rank><<<1, threads>>>(mapOf(tensor, source), mapOf(tensor, target), Copy{tensor.rank, at, to, {}, bytes, mode}, seen);
  CHECK(cudaGetLastError());
  return same("box", seen.download(), boxes) && same("tensor", target.download(), stored);
}

bool copiesEveryKind() {
  const Places ones{{1, 1, 1, 1, 1}}, extents{{20, 6, 5, 4, 3}}, box{{8, 3, 2, 2, 2}};
  // Boxes begin at multiples of 16 bytes in their row. Loaded boxes may begin before the tensor, and any may extend beyond its end.
  bool ok = copies<1>({1, extents, box, ones}, {-4}, {16}, tiled);
  ok &= copies<1>({1, extents, box, ones}, {16}, {12}, tiled);
  ok &= copies<2>({2, extents, box, ones}, {-4, 5}, {16, 4}, tiled);
  ok &= copies<2>({2, extents, box, ones}, {16, -2}, {0, 0}, tiled);
  ok &= copies<2>({2, extents, box, ones}, {4, 2}, {12, 4}, added);
  ok &= copies<3>({3, extents, box, ones}, {4, 1, 1}, {0, 0, 4}, tiled);
  ok &= copies<4>({4, extents, box, ones}, {4, 3, 2, -1}, {8, 0, 0, 1}, tiled);
  ok &= copies<5>({5, extents, box, ones}, {16, 1, 4, 3, 1}, {0, 1, 2, 0, 0}, tiled);
  ok &= copies<2>({2, {64, 40}, {32, 24}, {1, 3}}, {16, 8}, {0, 0}, tiled);
  for (const CUtensorMapSwizzle swizzle : {CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B}) {
    const int width = 4 << static_cast<int>(swizzle);
    ok &= copies<2>({2, {64, 40}, {width, 33}, ones, swizzle}, {4, 2}, {8, 10}, tiled);
    ok &= copies<3>({3, {64, 12, 5}, {width, 9, 3}, ones, swizzle}, {40, -3, 3}, {0, 4, 0}, tiled);
  }
  return ok;
}

// Pixels of images with a padding of one, in the order in which a convolution reads them.
struct Pixel {
  int w = -1, h = -1, n = 0;
};
void goOn(Pixel& at, int step, int width, int height) {
  if ((at.w += step) < width - 1) return;
  at.w = -1;
  if ((at.h += step) < height - 1) return;
  at.h = -1;
  ++at.n;
}

// Images of eight channels and their pixels under an element of a 3 x 3 filter, with a padding of one, in a convolution's order.
bool takesPixels(int step) {
  constexpr int channels = 8, width = 10, height = 7, images = 2, taken = 64;
  const Tensor tensor{4, {channels, width, height, images}, {}, {}};
  const std::vector<unsigned> values = numbered(tensor.count());
  DeviceArray<unsigned> source(values), seen(room / 4);
  alignas(64) CUtensorMap map;
  const cuuint64_t extents[] = {channels, width, height, images},
                   strides[] = {channels * 4, channels * width * 4, channels * width * height * 4};
  const cuuint32_t steps[] = {1, static_cast<cuuint32_t>(step), static_cast<cuuint32_t>(step), 1};
  const int lower[] = {-1, -1}, upper[] = {-1, -1};
  if (!EXPECT(driverEntry<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col")(
                  &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, static_cast<unsigned*>(source), extents, strides, lower, upper,
                  channels, taken, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS))
    return false;
  bool ok = true;
  for (const Places filter : {Places{{0, 0}}, Places{{2, 1}}, Places{{1, 2}}}) {
    std::vector<unsigned> expected(room / 4);
    Pixel at;
    for (int pixel = 0; pixel < taken; ++pixel) {
      const int x = at.w + filter[0], y = at.h + filter[1];
      const bool inside = x >= 0 && x < width && y >= 0 && y < height && at.n < images;
      for (int c = 0; c < channels && inside; ++c)
        expected[static_cast<size_t>(pixel * channels + c)] =
            values[static_cast<size_t>(((at.n * height + y) * width + x) * channels + c)];
      goOn(at, step, width, height);
    }
    copyBox<4><<<1, threads>>>(map, map, Copy{4, {0, -1, -1, 0}, {}, filter, taken * channels * 4, pixels}, seen);
    CHECK(cudaGetLastError());
    ok &= same("pixels", seen.download(), expected);
  }
  return ok;
}

// Interleaved layouts, whose elements are units of 16 or 32 bytes of channels: rows of units, and dimensions of rows. The last dimension
// but one counts slices of channels, of which a copy takes one.
struct Units {
  int rank, bytes;
  Places extents, box, steps;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;

  int numbers() const { return bytes / 4; }  // per unit
  int slices() const { return rank - 2; }
  size_t count() const {
    size_t all = static_cast<size_t>(numbers());
    for (int i = 0; i < rank; ++i) all *= static_cast<size_t>(extents[i]);
    return all;
  }
  CUtensorMapInterleave layout() const { return bytes == 16 ? CU_TENSOR_MAP_INTERLEAVE_16B : CU_TENSOR_MAP_INTERLEAVE_32B; }
  // The index of the number in memory at which the unit begins; -1 outside.
  long indexOf(const Places& place) const {
    long index = 0, scale = numbers();
    for (int i = 0; i < rank; ++i) {
      if (place[i] < 0 || place[i] >= extents[i]) return -1;
      index += place[i] * scale;
      scale *= extents[i];
    }
    return index;
  }
};

CUtensorMap mapOfUnits(const Units& tensor, void* data) {
  alignas(64) CUtensorMap map;
  const Shape of(tensor, static_cast<cuuint64_t>(tensor.bytes));
  const CUresult result = driverEntry<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
      &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, static_cast<cuuint32_t>(tensor.rank), data, of.extents, of.strides, of.box, of.steps,
      tensor.layout(), tensor.swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result == CUDA_SUCCESS) return map;
  std::fprintf(stderr, "an interleaved tensor map: %d\n", static_cast<int>(result));
  std::exit(1);
}

template <int Rank>
bool copiesUnits(const Units& tensor, Places at, Places to, Mode mode) {
  const std::vector<unsigned> values = numbered(tensor.count());
  DeviceArray<unsigned> source(values), target(std::vector<unsigned>(tensor.count(), 7)), seen(room / 4);
  std::vector<unsigned> boxes(room / 4), stored(tensor.count(), 7);
  const int slices = tensor.slices();
  Places in{};
  unsigned bytes = 0;
  for (int dimension = 0; dimension < Rank;) {
    Places from = at, into = to;
    for (int i = 0; i < Rank; ++i) from[i] += in[i] * tensor.steps[i], into[i] += in[i] * tensor.steps[i];
    const long begin = tensor.indexOf(from), end = tensor.indexOf(into);
    for (int i = 0; i < tensor.numbers(); ++i, bytes += 4) {
      const unsigned value = begin < 0 ? 0 : values[static_cast<size_t>(begin + i)];
      boxes[swizzledByte(tensor.swizzle, bytes) / 4] = value;
      if (end >= 0) stored[static_cast<size_t>(end + i)] = value + (mode == added ? 7 : 0);
    }
    for (dimension = 0; dimension < Rank; in[dimension++] = 0)
      if (dimension != slices && ++in[dimension] * tensor.steps[dimension] < tensor.box[dimension]) break;
  }
  copyBox<Rank><<<1, threads>>>(mapOfUnits(tensor, source), mapOfUnits(tensor, target), Copy{Rank, at, to, {}, bytes, mode}, seen);
  CHECK(cudaGetLastError());
  return same("units", seen.download(), boxes) && same("tensor of units", target.download(), stored);
}

bool copiesInterleaved() {
  const Places ones{{1, 1, 1, 1, 1}}, extents{{7, 6, 5, 4, 3}};
  bool ok = true;
  for (int bytes : {16, 32}) {
    ok &= copiesUnits<3>({3, bytes, extents, {4, 1, 2}, ones}, {1, 2, 1}, {0, 3, 2}, tiled);
    ok &= copiesUnits<3>({3, bytes, extents, {8, 4, 3}, ones}, {-2, 5, 3}, {5, 0, 0}, tiled);
    ok &= copiesUnits<3>({3, bytes, extents, {8, 9, 2}, {2, 1, 1}}, {1, 6, 0}, {0, 1, 1}, tiled);
    ok &= copiesUnits<4>({4, bytes, extents, {4, 3, 2, 2}, {1, 2, 1, 1}}, {3, -1, 4, 2}, {3, 1, 4, 0}, tiled);
    ok &= copiesUnits<5>({5, bytes, {7, 4, 3, 3, 2}, {4, 2, 2, 1, 2}, ones}, {1, 1, -1, 2, 1}, {0, 0, 1, 1, 0}, tiled);
    for (const CUtensorMapSwizzle swizzle : {CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_128B})
      ok &= copiesUnits<3>({3, bytes, {30, 3, 4}, {16, 1, 4}, ones, swizzle}, {5, 1, 0}, {10, 2, 0}, tiled);
  }
  return ok;
}

// Pixels of a slice of image channels, as in takesPixels().
bool takesUnits(int bytes, int step) {
  constexpr int width = 10, height = 7, sliced = 3, images = 2, taken = 64, slice = 1;
  const Units tensor{4, bytes, {width, height, sliced, images}, {}, {step, step, 1, 1}};
  const std::vector<unsigned> values = numbered(tensor.count());
  DeviceArray<unsigned> source(values), seen(room / 4);
  alignas(64) CUtensorMap map;
  const Shape of(tensor, static_cast<cuuint64_t>(tensor.bytes));
  const int lower[] = {-1, -1}, upper[] = {-1, -1};
  if (!EXPECT(driverEntry<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col")(
                  &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, static_cast<unsigned*>(source), of.extents, of.strides, lower, upper,
                  static_cast<cuuint32_t>(tensor.numbers()), taken, of.steps, tensor.layout(), CU_TENSOR_MAP_SWIZZLE_NONE,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS))
    return false;
  bool ok = true;
  for (const Places filter : {Places{{0, 0}}, Places{{2, 1}}, Places{{1, 2}}}) {
    std::vector<unsigned> expected(room / 4);
    Pixel at;
    for (int pixel = 0; pixel < taken; ++pixel) {
      const long begin = tensor.indexOf({at.w + filter[0], at.h + filter[1], slice, at.n});
      for (int i = 0; i < tensor.numbers() && begin >= 0; ++i)
        expected[static_cast<size_t>(pixel * tensor.numbers() + i)] = values[static_cast<size_t>(begin + i)];
      goOn(at, step, width, height);
    }
    const auto size = static_cast<unsigned>(taken * bytes);
    copyBox<4><<<1, threads>>>(map, map, Copy{4, {-1, -1, slice, 0}, {}, filter, size, pixels}, seen);
    CHECK(cudaGetLastError());
    ok &= same("pixels of units", seen.download(), expected);
  }
  return ok;
}

// The first block of each pair loads for both.
__global__ void __cluster_dims__(2, 1, 1) loadForBoth(const __grid_constant__ CUtensorMap map, unsigned* sums) {
  __shared__ __align__(128) unsigned box[64];
  __shared__ uint64_t barrier;
  unsigned rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  if (threadIdx.x == 0) {
    initBarrier(&barrier, 1);
    publishBarriers();
    arriveExpecting(&barrier, sizeof box);
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
  if (rank == 0 && threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%2}], "
        "[%3], %4;" ::"r"(sharedAddress(box)),
        "l"(&map), "r"(static_cast<int>(blockIdx.x / 2 * 64)), "r"(sharedAddress(&barrier)), "h"(static_cast<uint16_t>(3))
        : "memory");
  waitFor(&barrier, 0);
  if (threadIdx.x == 0) {
    unsigned sum = 0;
    for (const unsigned each : box) sum += each;
    sums[blockIdx.x] = sum;
  }
  asm volatile("barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;" ::: "memory");
}

bool loadsForBoth() {
  DeviceArray<unsigned> values(numbered(128)), sums(4);
  loadForBoth<<<4, threads>>>(mapOf({1, {128}, {64}, {1}}, values), sums);
  CHECK(cudaGetLastError());
  return same("sums", sums.download(), {2080, 2080, 6176, 6176});
}

bool refuses() {
  DeviceArray<unsigned> values(64 * 64);
  alignas(64) CUtensorMap map;
  const Tensor good{2, {64, 64}, {8, 8}, {1, 1}};
  const auto gives = [&](const char* what, Tensor tensor, size_t offset = 0) {
    const CUresult result = encode(&map, tensor, reinterpret_cast<unsigned char*>(static_cast<unsigned*>(values)) + offset);
    if (result == CUDA_ERROR_INVALID_VALUE) return true;
    std::fprintf(stderr, "a map with %s gave %d\n", what, static_cast<int>(result));
    return false;
  };
  bool ok = EXPECT(encode(&map, good, values) == CUDA_SUCCESS);
  ok &= gives("no dimension", {0, good.extents, good.box, good.steps}) & gives("an address of 8 bytes", good, 8);
  ok &= gives("no room", {2, {0, 64}, {8, 8}, {1, 1}}) & gives("a box of 257", {2, {64, 64}, {8, 257}, {1, 1}});
  ok &= gives("an empty box", {2, {64, 64}, {8, 0}, {1, 1}}) & gives("rows of 12 bytes", {2, {64, 64}, {3, 8}, {1, 1}});
  ok &= gives("a stride of 8 bytes", {2, {2, 64}, {4, 8}, {1, 1}}) & gives("a step of 9", {2, {64, 64}, {8, 9}, {1, 9}});
  ok &= gives("a step of none", {2, {64, 64}, {8, 9}, {1, 0}});
  const cuuint64_t extent = 64;
  const cuuint32_t box = 64, step = 1;
  ok &= EXPECT(driverEntry<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
                   &map, CU_TENSOR_MAP_DATA_TYPE_UINT32, 1, values, &extent, nullptr, &box, &step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                   CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) ==
               CUDA_ERROR_INVALID_VALUE);  // there are no strides, but null is not allowed
  return ok & gives("rows that are longer than the swizzle", {2, {64, 64}, {16, 8}, {1, 1}, CU_TENSOR_MAP_SWIZZLE_32B});
}

// A load or store at coordinates that a box must not have: its kernel ends with that error, and so does the context, so nothing is freed.
bool faults(const std::string& what) {
  const Tensor tensor{2, {20, 6}, {8, 3}, {1, 1}};
  const Places load = what == "unaligned" ? Places{{1, 0}} : Places{{0, 0}};
  const Places store = what == "unaligned" ? Places{{0, 0}} : Places{{0, -1}};
  unsigned *data, *seen;
  CHECK(cudaMalloc(&data, tensor.count() * sizeof(unsigned)));
  CHECK(cudaMalloc(&seen, room));
  const CUtensorMap map = mapOf(tensor, data);
  copyBox<2><<<1, threads>>>(map, map, Copy{2, load, store, {}, 8 * 3 * 4, what == "added-before" ? added : tiled}, seen);
  return EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorIllegalInstruction);
}

int main(int argc, char** argv) {
  if (!isHopper()) return notHere;
  if (argc > 1) return verdict("tensor-maps", faults(argv[1]));
  DeviceArray<unsigned> values(numbered(128)), sums(4);
  const CUtensorMap kept = mapOf({1, {128}, {64}, {1}}, values);
  bool ok = copiesEveryKind() & copiesInterleaved() & refuses();
  for (int bytes : {16, 32}) ok &= takesUnits(bytes, 1) & takesUnits(bytes, 2);

  pausePoint();  // a map that was made before stays valid

  loadForBoth<<<4, threads>>>(kept, sums);
  CHECK(cudaGetLastError());
  ok &= same("sums of a kept map", sums.download(), {2080, 2080, 6176, 6176});
  ok &= loadsForBoth() & takesPixels(1) & takesPixels(2) & copiesEveryKind();
  return verdict("tensor-maps", ok);
}
