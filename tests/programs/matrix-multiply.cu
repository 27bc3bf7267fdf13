// Multiplies three matrices, tile by tile in shared memory. No size is a multiple of the tile's. The elements are small integers, so every
// sum is exact in a float, and results are compared exactly.
#include "bench.h"
#include "random-numbers.h"

constexpr int tile = 16;

struct Matrix {
  int rows, columns;
  size_t size() const { return size_t(rows) * columns; }
};

__global__ void multiply(const float* a, const float* b, float* product, int rows, int inner, int columns) {
  __shared__ float tileA[tile][tile], tileB[tile][tile];
  const int row = blockIdx.y * tile + threadIdx.y, column = blockIdx.x * tile + threadIdx.x;
  float sum = 0;
  for (int start = 0; start < inner; start += tile) {
    const int k = start + threadIdx.x, l = start + threadIdx.y;
    tileA[threadIdx.y][threadIdx.x] = row < rows && k < inner ? a[row * inner + k] : 0;
    tileB[threadIdx.y][threadIdx.x] = l < inner && column < columns ? b[l * columns + column] : 0;
    __syncthreads();
    for (int i = 0; i < tile; ++i) sum += tileA[threadIdx.y][i] * tileB[i][threadIdx.x];
    __syncthreads();
  }
  if (row < rows && column < columns) product[row * columns + column] = sum;
}

void multiplyOnDevice(const float* a, Matrix shapeA, const float* b, Matrix shapeB, float* product) {
  const dim3 grid(blocksFor(shapeB.columns, tile), blocksFor(shapeA.rows, tile)), block(tile, tile);
  multiply<<<grid, block>>>(a, b, product, shapeA.rows, shapeA.columns, shapeB.columns);
  CHECK(cudaGetLastError());
}

std::vector<float> multiplyOnHost(const std::vector<float>& a, Matrix shapeA, const std::vector<float>& b,
                                  Matrix shapeB) {
  std::vector<float> product(size_t(shapeA.rows) * shapeB.columns);
  for (int row = 0; row < shapeA.rows; ++row) {
    for (int k = 0; k < shapeA.columns; ++k) {
      for (int column = 0; column < shapeB.columns; ++column) {
        product[row * shapeB.columns + column] += a[row * shapeA.columns + k] * b[k * shapeB.columns + column];
      }
    }
  }
  return product;
}

std::vector<float> randomMatrix(Matrix shape, unsigned seed) {
  const auto values = randomInts(shape.size(), -4, 4, seed);
  return {values.begin(), values.end()};
}

// The SDK sample's shapes, and as there many products of the same matrices.
int measure(const Bench& bench) {
  const int side = bench.size(320, 32), products = bench.size(30, 2);
  const Matrix shapeA{side, side}, shapeB{side, 2 * side};
  const auto hostA = randomMatrix(shapeA, 1), hostB = randomMatrix(shapeB, 2);
  std::vector<float> result(shapeB.size());
  DeviceArray<float> a(hostA.size()), b(hostB.size()), product(result.size());
  bench.steady(60, [&] {
    a.copyIn(hostA);
    b.copyIn(hostB);
    for (int i = 0; i < products; ++i) multiplyOnDevice(a, shapeA, b, shapeB, product);
    product.copyOut(result);
  });
  return bench.digest(result);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const Matrix shapeA{130, 75}, shapeB{75, 101}, shapeC{101, 67}, shapeAB{130, 101}, shapeABC{130, 67};
  const auto hostA = randomMatrix(shapeA, 1), hostB = randomMatrix(shapeB, 2), hostC = randomMatrix(shapeC, 3);
  DeviceArray<float> a(hostA), b(hostB), c(hostC), ab(shapeAB.size()), abc(shapeABC.size());

  multiplyOnDevice(a, shapeA, b, shapeB, ab);
  pausePoint();
  multiplyOnDevice(ab, shapeAB, c, shapeC, abc);

  const auto expectedAB = multiplyOnHost(hostA, shapeA, hostB, shapeB);
  const auto expectedABC = multiplyOnHost(expectedAB, shapeAB, hostC, shapeC);
  return verdict("matrix-multiply", same("AB", ab.download(), expectedAB) & same("ABC", abc.download(), expectedABC));
}
