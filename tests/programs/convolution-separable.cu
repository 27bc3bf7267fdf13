// Convolves an image with a separable filter, rows first and then columns, from tiles in shared memory with the margin that the filter
// needs; the filter is in constant memory. Pixels and weights are small integers, so every sum is exact.
#include "bench.h"
#include "random-numbers.h"

constexpr int radius = 6, tile = 16;

struct Size {
  int width, height;
  int pixels() const { return width * height; }
};

__constant__ float weights[2 * radius + 1];

// One pass, in the direction given by `alongX`. A block's tile has margins only at both ends of that direction.
template <bool alongX>
__global__ void convolve(const float* from, float* to, Size size) {
  __shared__ float shared[tile][tile + 2 * radius];
  const int across = alongX ? threadIdx.y : threadIdx.x, along = alongX ? threadIdx.x : threadIdx.y;
  const int x = blockIdx.x * tile + threadIdx.x, y = blockIdx.y * tile + threadIdx.y;
  const int start = (alongX ? blockIdx.x : blockIdx.y) * tile - radius;
  for (int i = along; i < tile + 2 * radius; i += tile) {
    const int column = alongX ? start + i : x, row = alongX ? y : start + i;
    const bool inside = column >= 0 && column < size.width && row >= 0 && row < size.height;
    shared[across][i] = inside ? from[row * size.width + column] : 0;
  }
  __syncthreads();
  if (x >= size.width || y >= size.height) return;
  float sum = 0;
  for (int i = 0; i <= 2 * radius; ++i) sum += weights[i] * shared[across][along + i];
  to[y * size.width + x] = sum;
}

// The two-dimensional filter in one step; the two passes together must give the same.
std::vector<float> convolveOnHost(const std::vector<float>& image, const std::vector<float>& filter, Size size) {
  const auto [width, height] = size;
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

std::vector<float> wholeNumbers(int count, int low, int high, unsigned seed) {
  const auto drawn = randomInts(count, low, high, seed);
  return {drawn.begin(), drawn.end()};
}

std::vector<float> setFilter() {
  const auto filter = wholeNumbers(2 * radius + 1, -5, 9, 2);
  CHECK(cudaMemcpyToSymbol(weights, filter.data(), sizeof weights));
  return filter;
}

template <bool alongX>
void convolveOnDevice(const float* from, float* to, Size size) {
  const dim3 grid(blocksFor(size.width, tile), blocksFor(size.height, tile)), block(tile, tile);
  convolve<alongX><<<grid, block>>>(from, to, size);
  CHECK(cudaGetLastError());
}

// The SDK sample's image size and its sixteen passes.
int measure(const Bench& bench) {
  const Size size{bench.size(3072, 96), bench.size(3072, 96)};
  const int passes = bench.size(16, 2);
  const auto image = wholeNumbers(size.pixels(), 0, 255, 1);
  setFilter();
  DeviceArray<float> input(size.pixels()), rows(size.pixels()), both(size.pixels());
  std::vector<float> result(size.pixels());
  bench.steady(20, [&] {
    input.copyIn(image);
    for (int i = 0; i < passes; ++i) {
      convolveOnDevice<true>(input, rows, size);
      convolveOnDevice<false>(rows, both, size);
    }
    both.copyOut(result);
  });
  return bench.digest(result);
}

int main(int argc, char** argv) {
  if (const Bench bench{argc, argv}) return measure(bench);

  const Size size{203, 117};
  const auto image = wholeNumbers(size.pixels(), 0, 255, 1), filter = setFilter();
  DeviceArray<float> input(image), rows(image.size()), both(image.size());

  convolveOnDevice<true>(input, rows, size);
  pausePoint();
  convolveOnDevice<false>(rows, both, size);
  return verdict("convolution-separable", same("pixels", both.download(), convolveOnHost(image, filter, size)));
}
