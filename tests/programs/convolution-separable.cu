// Convolves an image with a separable filter, rows first and columns after, from tiles in shared memory with the margin
// that the filter needs; the filter lies in constant memory. Pixels and weights are small whole numbers, so every sum
// is exact.
#include "program.h"

constexpr int radius = 6, tile = 16, width = 203, height = 117;

__constant__ float weights[2 * radius + 1];

// One pass; `alongX` says which way. A block's tile has the margin on both ends of that way only.
template <bool alongX>
__global__ void convolve(const float* from, float* to) {
  __shared__ float shared[tile][tile + 2 * radius];
  const int across = alongX ? threadIdx.y : threadIdx.x, along = alongX ? threadIdx.x : threadIdx.y;
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  const int start = (alongX ? blockIdx.x : blockIdx.y) * tile - radius;
  for (int i = along; i < tile + 2 * radius; i += tile) {
    const int column = alongX ? start + i : x, row = alongX ? y : start + i;
    const bool inside = column >= 0 && column < width && row >= 0 && row < height;
    shared[across][i] = inside ? from[row * width + column] : 0;
  }
  __syncthreads();
  if (x >= width || y >= height) return;
  float sum = 0;
  for (int i = 0; i <= 2 * radius; ++i) sum += weights[i] * shared[across][along + i];
  to[y * width + x] = sum;
}

// The two-dimensional filter at once, which the two passes together must equal.
std::vector<float> convolveOnHost(const std::vector<float>& image, const std::vector<float>& filter) {
  std::vector<float> result(image.size());
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      for (int j = -radius; j <= radius; ++j) {
        if (y + j < 0 || y + j >= height) continue;
        for (int i = -radius; i <= radius; ++i) {
          if (x + i < 0 || x + i >= width) continue;
          result[y * width + x] += filter[j + radius] * filter[i + radius] * image[(y + j) * width + x + i];
        }
      }
    }
  }
  return result;
}

int main() {
  const auto pixels = randomInts(width * height, 0, 255, 1), drawn = randomInts(2 * radius + 1, -5, 9, 2);
  const std::vector<float> image(pixels.begin(), pixels.end()), filter(drawn.begin(), drawn.end());
  CHECK(cudaMemcpyToSymbol(weights, filter.data(), sizeof weights));
  DeviceArray<float> input(image), rows(image.size()), both(image.size());

  const dim3 grid(blocksFor(width, tile), blocksFor(height, tile)), block(tile, tile);
  convolve<true><<<grid, block>>>(input, rows);
  CHECK(cudaGetLastError());
  pausePoint();
  convolve<false><<<grid, block>>>(rows, both);
  CHECK(cudaGetLastError());
  return verdict("convolution-separable", same("pixels", both.download(), convolveOnHost(image, filter)));
}
