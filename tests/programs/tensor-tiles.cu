// A matrix product with tensor cores: tiles in half precision that blocks stage in shared memory, sums in single precision. The
// numbers are small integers, so that every sum is exact.
//   tensor-tiles [SIZE]    of SIZE × SIZE, a multiple of 64
#include "program.h"

#include <cuda_fp16.h>
#include <mma.h>

#include <algorithm>

namespace {

namespace wmma = nvcuda::wmma;

constexpr int tile = 64, depth = 32, unit = 16;  // a block's part of the product; the staged depth; an instruction's size
constexpr int warps = 4, threads = warps * 32;   // each warp computes a row of units
constexpr int pad = 8;                           // avoids bank conflicts

using Sum = wmma::fragment<wmma::accumulator, unit, unit, unit, float>;

}  // namespace

__global__ void multiply(const __half* a, const __half* b, float* c, int size) {
  __shared__ __half left[tile][depth + pad], right[depth][tile + pad];
  const int warp = threadIdx.x / 32, row = blockIdx.y * tile, column = blockIdx.x * tile;
  Sum sums[tile / unit];
  for (Sum& sum : sums) wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < size; k += depth) {
    for (int i = threadIdx.x; i < tile * depth; i += threads) {
      left[i / depth][i % depth] = a[(row + i / depth) * size + k + i % depth];
      right[i / tile][i % tile] = b[(k + i / tile) * size + column + i % tile];
    }
    __syncthreads();
    for (int step = 0; step < depth; step += unit) {
      wmma::fragment<wmma::matrix_a, unit, unit, unit, __half, wmma::row_major> first;
      wmma::load_matrix_sync(first, &left[warp * unit][step], depth + pad);
      for (int i = 0; i < tile / unit; ++i) {
        wmma::fragment<wmma::matrix_b, unit, unit, unit, __half, wmma::row_major> second;
        wmma::load_matrix_sync(second, &right[step][i * unit], tile + pad);
        wmma::mma_sync(sums[i], first, second, sums[i]);
      }
    }
    __syncthreads();
  }
  for (int i = 0; i < tile / unit; ++i)
    wmma::store_matrix_sync(c + (row + warp * unit) * size + column + i * unit, sums[i], size, wmma::mem_row_major);
}

namespace {

std::vector<float> multiplied(const std::vector<int>& a, const std::vector<int>& b, int size) {
  std::vector<float> product(a.size());
  std::vector<int> row(size);
  for (int y = 0; y < size; ++y) {
    std::fill(row.begin(), row.end(), 0);
    for (int k = 0; k < size; ++k)
      for (int x = 0; x < size; ++x) row[x] += a[y * size + k] * b[k * size + x];
    for (int x = 0; x < size; ++x) product[y * size + x] = static_cast<float>(row[x]);
  }
  return product;
}

}  // namespace

int main(int argc, char** argv) {
  const int size = argc > 1 ? std::atoi(argv[1]) : 128;
  if (size <= 0 || size % tile != 0) return std::fprintf(stderr, "not a multiple of %d: %d\n", tile, size), 2;
  const size_t count = static_cast<size_t>(size) * size;
  std::vector<int> first(count), second(count);
  std::vector<__half> a(count), b(count);
  for (size_t i = 0; i < count; ++i) {
    first[i] = static_cast<int>(i * 7 / 5 % 9) - 4;
    second[i] = static_cast<int>(i * 11 / 3 % 7) - 3;
    a[i] = __float2half(static_cast<float>(first[i]));
    b[i] = __float2half(static_cast<float>(second[i]));
  }
  DeviceArray<__half> left(a), right(b);
  DeviceArray<float> product(count), transposed(count);
  const dim3 blocks(size / tile, size / tile);
  multiply<<<blocks, threads>>>(left, right, product, size);
  CHECK(cudaGetLastError());
  pausePoint();
  multiply<<<blocks, threads>>>(right, left, transposed, size);
  CHECK(cudaGetLastError());

  const bool ok = same("product", product.download(), multiplied(first, second, size)) &
                  same("product of the others", transposed.download(), multiplied(second, first, size));
  return verdict("tensor-tiles", ok);
}
