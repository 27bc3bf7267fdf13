// A matrix product as in kernels for Hopper: one warpgroup copies tiles with tensor maps, two multiply them, through a ring of stages whose
// barriers count bytes. Every sum is exact, so the result equals the CPU's bitwise.
#include <cuda_fp16.h>

#include "hopper.h"
#include "random-numbers.h"

constexpr int tileM = 128, tileN = 64, tileK = 64, ring = 3, groupThreads = 128;
constexpr int rows = 256, columns = 128, depth = 320;

struct Stage {
  __half a[tileM * tileK], b[tileN * tileK];  // rows of 128 bytes, swizzled
};
struct Memory {
  Stage stages[ring];
  float sums[2][64 * tileN];  // of each multiplying warpgroup
  uint64_t full[ring], empty[ring];
};

__device__ void multiply64(float (&d)[32], uint64_t a, uint64_t b) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, 1, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, "
      "%18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, %32, %33, p, 1, 1, 0, 0; }"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]),
        "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]),
        "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]),
        "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
      : "l"(a), "l"(b));
}

__device__ void copyTiles(Memory& memory, const CUtensorMap* a, const CUtensorMap* b) {
  for (int k = 0; k < depth / tileK; ++k) {
    const int stage = k % ring;
    if (k >= ring) waitFor(&memory.empty[stage], (k / ring - 1) & 1);
    arriveExpecting(&memory.full[stage], sizeof(Stage));
    loadTensor2d(memory.stages[stage].a, a, k * tileK, static_cast<int>(blockIdx.y) * tileM, &memory.full[stage]);
    loadTensor2d(memory.stages[stage].b, b, k * tileK, static_cast<int>(blockIdx.x) * tileN, &memory.full[stage]);
  }
}

__device__ void multiplyTiles(Memory& memory, int group, float (&sums)[32]) {
  for (float& sum : sums) sum = 0;
  for (int k = 0; k < depth / tileK; ++k) {
    const int stage = k % ring;
    waitFor(&memory.full[stage], k / ring & 1);
    beginProducts();
    for (int step = 0; step < tileK / 16; ++step)
      multiply64(sums, describe(memory.stages[stage].a + group * 64 * tileK + step * 16, 16, 1024, Span::bytes128),
                 describe(memory.stages[stage].b + step * 16, 16, 1024, Span::bytes128));
    waitForProducts();
    if (threadIdx.x % groupThreads == 0) arrive(&memory.empty[stage]);
  }
}

// A thread's sums are in two rows, in two adjacent columns of every eight.
__device__ void storeSums(Memory& memory, int group, const float (&sums)[32], const CUtensorMap* d) {
  const int thread = threadIdx.x % groupThreads, warp = thread / 32, lane = thread % 32;
  for (int i = 0; i < 32; ++i) {
    const int row = warp * 16 + lane / 4 + (i % 4 >= 2 ? 8 : 0), column = i / 4 * 8 + lane % 4 * 2 + i % 2;
    memory.sums[group][row * tileN + column] = sums[i];
  }
  publishShared();
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (thread != 0) return;
  storeTensor2d(d, static_cast<int>(blockIdx.x) * tileN, static_cast<int>(blockIdx.y) * tileM + group * 64, memory.sums[group]);
  commitCopies();
  waitForCopies();
}

__global__ void __launch_bounds__(3 * groupThreads, 1)
    multiply(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             const __grid_constant__ CUtensorMap d) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  Memory& memory = *reinterpret_cast<Memory*>(bytes);
  if (threadIdx.x == 0) {
    for (int stage = 0; stage < ring; ++stage) {
      initBarrier(&memory.full[stage], 1);
      initBarrier(&memory.empty[stage], 2);
    }
    publishBarriers();
  }
  __syncthreads();
  const int group = static_cast<int>(threadIdx.x) / groupThreads - 1;
  if (group < 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) copyTiles(memory, &a, &b);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float sums[32];
    multiplyTiles(memory, group, sums);
    storeSums(memory, group, sums, &d);
  }
}

CUtensorMap describeTensor(void* data, CUtensorMapDataType type, unsigned bytes, unsigned width, unsigned height,
                           unsigned boxWidth, unsigned boxHeight, CUtensorMapSwizzle swizzle) {
  alignas(64) CUtensorMap map;
  const cuuint64_t extents[] = {width, height}, strides[] = {static_cast<cuuint64_t>(width) * bytes};
  const cuuint32_t box[] = {boxWidth, boxHeight}, steps[] = {1, 1};
  const CUresult result = driverEntry<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
      &map, type, 2, data, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    std::fprintf(stderr, "cuTensorMapEncodeTiled gave %d\n", static_cast<int>(result));
    std::exit(1);
  }
  return map;
}

std::vector<__half> halves(const std::vector<int>& values) {
  std::vector<__half> converted;
  for (const int value : values) converted.push_back(__float2half(static_cast<float>(value)));
  return converted;
}

int main() {
  if (!isHopper()) return notHere;
  const std::vector<int> left = randomInts(rows * depth, -3, 3, 1), right = randomInts(columns * depth, -3, 3, 2);
  std::vector<float> expected(rows * columns);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) {
      int sum = 0;
      for (int k = 0; k < depth; ++k) sum += left[i * depth + k] * right[j * depth + k];
      expected[i * columns + j] = static_cast<float>(sum);
    }
  DeviceArray<__half> a(halves(left)), b(halves(right));
  DeviceArray<float> d(rows * columns);
  const CUtensorMap mapA = describeTensor(a, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, depth, rows, tileK, tileM,
                                          CU_TENSOR_MAP_SWIZZLE_128B),
                    mapB = describeTensor(b, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, depth, columns, tileK, tileN,
                                          CU_TENSOR_MAP_SWIZZLE_128B),
                    mapD = describeTensor(d, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, columns, rows, tileN, 64,
                                          CU_TENSOR_MAP_SWIZZLE_NONE);
  CHECK(cudaFuncSetAttribute(multiply, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Memory)));
  bool ok = true;
  for (int round = 0; round < 2 && ok; ++round) {
    CHECK(cudaMemset(d, 0xff, rows * columns * sizeof(float)));
    multiply<<<dim3(columns / tileN, rows / tileM), 3 * groupThreads, sizeof(Memory)>>>(mapA, mapB, mapD);
    CHECK(cudaGetLastError());
    ok = same("product", d.download(), expected);
    if (round == 0) pausePoint();  // the maps contain addresses
  }
  return verdict("warpgroup-gemm", ok);
}
