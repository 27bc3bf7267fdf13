// Warpgroup products: every element type, operands in registers and in shared memory, in every swizzle and along either dimension, negated,
// and sparse. Elements are small integers, so that every sum is exact and equals the CPU's.
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cstring>
#include <string>

#include "hopper.h"
#include "random-numbers.h"

constexpr int rows = 64, columns = 32, threads = 128, sums = columns / 2, room = 64 * 1024, placeOfB = 32 * 1024;

// One product: the bytes of shared memory and the registers of A as laid out by the host, accumulators in and out.
struct Work {
  const uint32_t* image;      // room bytes
  const uint32_t* registers;  // of A, four per thread
  const uint32_t* metadata;   // for a sparse A
  uint32_t* accumulators;     // each thread's sums
  uint64_t a, b;              // descriptors without the address
};

#define SUMS(c)                                                                                                           \
  c(d[0]), c(d[1]), c(d[2]), c(d[3]), c(d[4]), c(d[5]), c(d[6]), c(d[7]), c(d[8]), c(d[9]), c(d[10]), c(d[11]), c(d[12]), \
      c(d[13]), c(d[14]), c(d[15])
#define LIST "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define IN_OUT(value) "+r"(value)
#define MULTIPLY(shape, types, behind)                                                                                    \
  asm volatile("{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.fence.sync.aligned; wgmma.mma_async.sync.aligned." shape types \
               " " LIST ", %16, %17, p" behind "; }"                                                                      \
               : SUMS(IN_OUT)                                                                                             \
               : "l"(a), "l"(b))

// The instructions, by number.
enum Product {
  halves,
  negated,
  alongRows,
  brains,
  tf32s,
  e4m3s,
  mixedFloats,
  bytes,
  mixedBytes,
  bitPairs,
  registersOfA,
  sparse,
  products
};

__global__ void multiply(Work work, int product) {
  extern __shared__ __align__(1024) uint32_t image[];
  for (int i = threadIdx.x; i < room / 4; i += threads) image[i] = work.image[i];
  publishShared();
  __syncthreads();
  uint32_t d[sums], r[4];
  for (int i = 0; i < sums; ++i) d[i] = work.accumulators[threadIdx.x * sums + i];
  for (int i = 0; i < 4; ++i) r[i] = work.registers[threadIdx.x * 4 + i];
  const uint32_t e = work.metadata[threadIdx.x];
  const uint64_t base = describe(image, 0, 0, Span::none), a = work.a + base, b = work.b + base;
  switch (product) {
    case halves:
      MULTIPLY("m64n32k16", ".f32.f16.f16", ", 1, 1, 0, 0");
      break;
    case negated:
      MULTIPLY("m64n32k16", ".f32.f16.f16", ", -1, 1, 0, 0");
      break;
    case alongRows:
      MULTIPLY("m64n32k16", ".f32.f16.f16", ", 1, 1, 1, 1");
      break;
    case brains:
      MULTIPLY("m64n32k16", ".f32.bf16.bf16", ", 1, 1, 0, 1");
      break;
    case tf32s:
      MULTIPLY("m64n32k8", ".f32.tf32.tf32", ", 1, 1");
      break;
    case e4m3s:
      MULTIPLY("m64n32k32", ".f32.e4m3.e4m3", ", 1, 1");
      break;
    case mixedFloats:
      MULTIPLY("m64n32k32", ".f32.e5m2.e4m3", ", 1, 1");
      break;
    case bytes:
      MULTIPLY("m64n32k32", ".s32.s8.s8", "");
      break;
    case mixedBytes:
      MULTIPLY("m64n32k32", ".s32.u8.s8", "");
      break;
    case bitPairs:
      MULTIPLY("m64n32k256", ".s32.b1.b1.and.popc", "");
      break;
    case registersOfA:
      asm volatile(
          "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.fence.sync.aligned; "
          "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 " LIST ", {%16, %17, %18, %19}, %20, p, 1, 1, 0; }"
          : SUMS(IN_OUT)
          : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]), "l"(b));
      break;
    case sparse:
      asm volatile(
          "{ .reg .pred p; setp.ne.b32 p, 1, 0; wgmma.fence.sync.aligned; "
          "wgmma.mma_async.sp.sync.aligned.m64n32k32.f32.f16.f16 " LIST ", %16, %17, %18, 0, p, 1, 1, 0, 0; }"
          : SUMS(IN_OUT)
          : "l"(a), "l"(b), "r"(e));
      break;
  }
  waitForProducts();
  for (int i = 0; i < sums; ++i) work.accumulators[threadIdx.x * sums + i] = d[i];
}

// ---- elements
using Encode = uint32_t (*)(int);
uint32_t halfOf(int value) { return __half_as_ushort(__float2half(static_cast<float>(value))); }
uint32_t floatOf(int value) {
  const float converted = static_cast<float>(value);
  uint32_t bits;
  std::memcpy(&bits, &converted, sizeof bits);
  return bits;
}
uint32_t brainOf(int value) { return floatOf(value) >> 16; }
uint32_t e4m3Of(int value) { return __nv_cvt_float_to_fp8(static_cast<float>(value), __NV_SATFINITE, __NV_E4M3); }
uint32_t e5m2Of(int value) { return __nv_cvt_float_to_fp8(static_cast<float>(value), __NV_SATFINITE, __NV_E5M2); }
uint32_t wholeOf(int value) { return static_cast<uint32_t>(value); }

struct Kind {
  const char* name;
  int bits, depth;
  Encode a, b;
  int least, most;  // range of A's elements
  bool isWhole, aAcross, bAcross;
};
constexpr Kind kinds[products] = {{"halves", 16, 16, halfOf, halfOf, -3, 3, false, false, false},
                                  {"halves, A negated", 16, 16, halfOf, halfOf, -3, 3, false, false, false},
                                  {"halves along rows and columns", 16, 16, halfOf, halfOf, -3, 3, false, true, true},
                                  {"bfloat16, B along columns", 16, 16, brainOf, brainOf, -3, 3, false, false, true},
                                  {"tf32", 32, 8, floatOf, floatOf, -3, 3, false, false, false},
                                  {"e4m3", 8, 32, e4m3Of, e4m3Of, -3, 3, false, false, false},
                                  {"e5m2 and e4m3", 8, 32, e5m2Of, e4m3Of, -3, 3, false, false, false},
                                  {"s8", 8, 32, wholeOf, wholeOf, -100, 100, true, false, false},
                                  {"u8 and s8", 8, 32, wholeOf, wholeOf, 0, 200, true, false, false},
                                  {"bits", 1, 256, wholeOf, wholeOf, 0, 1, true, false, false},
                                  {"A in registers", 16, 16, halfOf, halfOf, -3, 3, false, false, false},
                                  {"sparse halves", 16, 32, halfOf, halfOf, -3, 3, false, false, false}};

void put(std::vector<uint32_t>& words, size_t bit, int bits, uint32_t value) {
  const uint32_t mask = bits == 32 ? ~0u : ((1u << bits) - 1) << bit % 32;
  words[bit / 32] = (words[bit / 32] & ~mask) | (value << bit % 32 & mask);
}

// Lays out lines of elements in shared memory, in groups of eight lines whose rows have `span` bytes; returns the descriptor without the
// address of the image. If `across`, the lines are along M or N: without a swizzle the two distances are then exchanged.
uint64_t lay(std::vector<uint32_t>& image, unsigned base, int span, bool across, int lines, int lineBits, int bits,
             const std::vector<uint32_t>& elements) {
  const unsigned chunks = static_cast<unsigned>((lineBits / 8 + span - 1) / span), group = 8u * static_cast<unsigned>(span);
  const unsigned along = span == 16 ? 128 : group * static_cast<unsigned>(lines) / 8, down = span == 16 ? 128 * chunks : group;
  const int perLine = lineBits / bits;
  for (int line = 0; line < lines; ++line)
    for (int i = 0; i < perLine; ++i) {
      const unsigned byte = static_cast<unsigned>(i * bits / 8), width = static_cast<unsigned>(span);
      unsigned at = base + byte / width * along + static_cast<unsigned>(line) / 8 * down +
                    static_cast<unsigned>(line) % 8 * width + byte % width;
      at ^= (at >> 7 & (width / 16 - 1)) << 4;
      put(image, size_t{at} * 8 + static_cast<size_t>(i * bits % 8), bits, elements[static_cast<size_t>(line * perLine + i)]);
    }
  const bool exchanged = across && span == 16;
  const uint64_t leading = exchanged ? down : along, stride = exchanged ? along : down;
  const uint64_t code = span == 16 ? 0 : span == 128 ? 1 : span == 64 ? 2 : 3;
  return base >> 4 | (leading >> 4) << 16 | (stride >> 4) << 32 | code << 62;
}

// The bits of a matrix, rows first or columns first.
std::vector<uint32_t> encoded(const std::vector<int>& values, int height, int width, Encode encode, bool byColumns) {
  std::vector<uint32_t> bits;
  for (int i = 0; i < height * width; ++i) {
    const int row = byColumns ? i % height : i / width, column = byColumns ? i / height : i % width;
    bits.push_back(encode(values[static_cast<size_t>(row * width + column)]));
  }
  return bits;
}

// The row and the column of the product for a thread's sum.
int rowOf(int thread, int i) { return thread / 32 * 16 + thread % 32 / 4 + (i % 4 >= 2 ? 8 : 0); }
int columnOf(int thread, int i) { return i / 4 * 8 + thread % 4 * 2 + i % 2; }

// Keeps two of each four elements of A's rows; a word of metadata describes four such chunks of a row and of the row eight below.
void makeSparse(std::vector<int>& left, int depth, std::vector<int>& stored, std::vector<uint32_t>& metadata) {
  for (int row = 0; row < rows; ++row)
    for (int chunk = 0; chunk < depth / 4; ++chunk) {
      const int first = (row + chunk) % 3, second = first + 1 + (row * 7 + chunk) % (3 - first);
      for (int i = 0; i < 4; ++i) {
        int& element = left[static_cast<size_t>(row * depth + chunk * 4 + i)];
        if (i == first || i == second)
          stored.push_back(element);
        else
          element = 0;
      }
      const int thread = row / 16 * 32 + row % 8 * 4 + chunk / 4, bit = row % 16 / 8 * 16 + chunk % 4 * 4;
      metadata[static_cast<size_t>(thread)] |= static_cast<uint32_t>(first | second << 2) << bit;
    }
}

bool isRight(int product, int spanA, int spanB) {
  const Kind& kind = kinds[product];
  const int stored = product == sparse ? kind.depth / 2 : kind.depth;
  std::vector<int> left = randomInts(static_cast<size_t>(rows * kind.depth), kind.least, kind.most, 1), kept;
  const std::vector<int> right = randomInts(static_cast<size_t>(kind.depth * columns),
                                            std::max(kind.least, kind.bits == 1 ? 0 : -3), kind.bits == 1 ? 1 : 3, 2);
  std::vector<uint32_t> image(room / 4), registers(threads * 4), metadata(threads), accumulators(threads * sums),
      expected(threads * sums);
  if (product == sparse) makeSparse(left, kind.depth, kept, metadata);
  const std::vector<int>& inMemory = product == sparse ? kept : left;
  Work work{};
  work.a = lay(image, 0, spanA, kind.aAcross, kind.aAcross ? stored : rows, (kind.aAcross ? rows : stored) * kind.bits, kind.bits,
               encoded(inMemory, rows, stored, kind.a, kind.aAcross));
  work.b = lay(image, placeOfB, spanB, kind.bAcross, kind.bAcross ? kind.depth : columns,
               (kind.bAcross ? columns : kind.depth) * kind.bits, kind.bits,
               encoded(right, kind.depth, columns, kind.b, !kind.bAcross));
  for (int thread = 0; thread < threads; ++thread) {
    for (int i = 0; i < 8 && product == registersOfA; ++i) {
      const int row = thread / 32 * 16 + thread % 32 / 4 + (i / 2 % 2 ? 8 : 0), column = i / 4 * 8 + thread % 4 * 2 + i % 2;
      put(registers, static_cast<size_t>(thread * 128 + i * 16), 16,
          kind.a(left[static_cast<size_t>(row * kind.depth + column)]));
    }
    for (int i = 0; i < sums; ++i) {
      const int start = thread % 17 - i;
      int sum = 0;
      for (int k = 0; k < kind.depth; ++k)
        sum += left[static_cast<size_t>(rowOf(thread, i) * kind.depth + k)] *
               right[static_cast<size_t>(k * columns + columnOf(thread, i))];
      sum = start + (product == negated ? -sum : sum);
      accumulators[static_cast<size_t>(thread * sums + i)] = kind.isWhole ? static_cast<uint32_t>(start) : floatOf(start);
      expected[static_cast<size_t>(thread * sums + i)] = kind.isWhole ? static_cast<uint32_t>(sum) : floatOf(sum);
    }
  }
  DeviceArray<uint32_t> deviceImage(image), deviceRegisters(registers), deviceMetadata(metadata), deviceSums(accumulators);
  work.image = deviceImage;
  work.registers = deviceRegisters;
  work.metadata = deviceMetadata;
  work.accumulators = deviceSums;
  multiply<<<1, threads, room>>>(work, product);
  CHECK(cudaGetLastError());
  return same(
      (std::string(kind.name) + ", spans of " + std::to_string(spanA) + " and " + std::to_string(spanB) + " bytes").c_str(),
      deviceSums.download(), expected);
}

bool allRight() {
  bool ok = true;
  for (int product = 0; product < products; ++product)
    for (const int spanA : {16, 32, 64, 128})
      for (const int spanB : {16, 32, 64, 128}) {
        if (product == sparse && spanB < 64) continue;  // a row of B is 64 bytes
        ok &= isRight(product, spanA, spanB);
      }
  return ok;
}

int main() {
  if (!isHopper()) return notHere;
  CHECK(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, room));
  bool ok = allRight();
  pausePoint();
  ok &= allRight();
  return verdict("warpgroup-types", ok);
}
