// Horn-Schunck optical flow on a pyramid: the second of two images is the first one, displaced. Each level warps the second image by the
// flow known so far, through a texture that interpolates, and improves the flow by Jacobi iterations in shared memory. The result is
// compared with the displacement.
//   optical-flow [WIDTH HEIGHT [ITERATIONS]]
#include "program.h"

#include <memory>

namespace {

constexpr int levels = 3, warpings = 3, side = 16;  // `side` of a block
constexpr float smoothness = 0.5f;
constexpr float moveX = 1.75f, moveY = -1.25f;

struct Extent {
  int width, height;
  int count() const { return width * height; }
  dim3 blocks() const { return dim3((width + side - 1) / side, (height + side - 1) / side); }
};

constexpr dim3 block{side, side};

__host__ __device__ inline int clampTo(int i, int size) { return i < 0 ? 0 : i < size ? i : size - 1; }

}  // namespace

// Half as wide and high: each element from four.
__global__ void halve(const float* from, int width, float* to, Extent extent) {
  const int x = blockIdx.x * side + threadIdx.x, y = blockIdx.y * side + threadIdx.y;
  if (x >= extent.width || y >= extent.height) return;
  const float* at = from + 2 * y * width + 2 * x;
  to[y * extent.width + x] = 0.25f * (at[0] + at[1] + at[width] + at[width + 1]);
}

// Twice as wide and high, with doubled flow.
__global__ void enlarge(const float2* from, Extent smaller, float2* to, Extent extent) {
  const int x = blockIdx.x * side + threadIdx.x, y = blockIdx.y * side + threadIdx.y;
  if (x >= extent.width || y >= extent.height) return;
  const float2 flow = from[clampTo(y / 2, smaller.height) * smaller.width + clampTo(x / 2, smaller.width)];
  to[y * extent.width + x] = {2 * flow.x, 2 * flow.y};
}

// The image derivatives in x, in y and from the first to the second image, at the position that the flow points to.
__global__ void differentiate(cudaTextureObject_t first, cudaTextureObject_t second, const float2* flow, float4* changes, Extent extent) {
  const int x = blockIdx.x * side + threadIdx.x, y = blockIdx.y * side + threadIdx.y;
  if (x >= extent.width || y >= extent.height) return;
  const int i = y * extent.width + x;
  const float u = x + 0.5f, v = y + 0.5f, tx = u + flow[i].x, ty = v + flow[i].y;
  auto across = [](cudaTextureObject_t from, float px, float py) { return tex2D<float>(from, px + 1, py) - tex2D<float>(from, px - 1, py); };
  auto down = [](cudaTextureObject_t from, float px, float py) { return tex2D<float>(from, px, py + 1) - tex2D<float>(from, px, py - 1); };
  const float dx = 0.25f * (across(first, u, v) + across(second, tx, ty)), dy = 0.25f * (down(first, u, v) + down(second, tx, ty));
  changes[i] = {dx, dy, tex2D<float>(second, tx, ty) - tex2D<float>(first, u, v), 0};
}

// One iteration of the correction to the flow.
__global__ void iterate(const float4* changes, const float2* from, float2* to, Extent extent) {
  __shared__ float2 tile[side + 2][side + 2];
  const int left = blockIdx.x * side - 1, top = blockIdx.y * side - 1;
  for (int i = threadIdx.y * side + threadIdx.x; i < (side + 2) * (side + 2); i += side * side) {
    const int y = clampTo(top + i / (side + 2), extent.height), x = clampTo(left + i % (side + 2), extent.width);
    tile[i / (side + 2)][i % (side + 2)] = from[y * extent.width + x];
  }
  __syncthreads();
  const int x = left + 1 + threadIdx.x, y = top + 1 + threadIdx.y, i = threadIdx.x + 1, j = threadIdx.y + 1;
  if (x >= extent.width || y >= extent.height) return;
  const float meanX = 0.25f * (tile[j][i - 1].x + tile[j][i + 1].x + tile[j - 1][i].x + tile[j + 1][i].x);
  const float meanY = 0.25f * (tile[j][i - 1].y + tile[j][i + 1].y + tile[j - 1][i].y + tile[j + 1][i].y);
  const float4 change = changes[y * extent.width + x];
  const float step = (change.x * meanX + change.y * meanY + change.z) / (smoothness + change.x * change.x + change.y * change.y);
  to[y * extent.width + x] = {meanX - change.x * step, meanY - change.y * step};
}

__global__ void addTo(float2* flow, const float2* more, Extent extent) {
  const int x = blockIdx.x * side + threadIdx.x, y = blockIdx.y * side + threadIdx.y, i = y * extent.width + x;
  if (x < extent.width && y < extent.height) flow[i].x += more[i].x, flow[i].y += more[i].y;
}

namespace {

// An image of one level, in an array that a texture interpolates.
class Picture {
 public:
  Picture(const float* values, Extent extent) {
    const cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    const size_t row = extent.width * sizeof(float);
    CHECK(cudaMallocArray(&array, &format, extent.width, extent.height));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, values, row, row, extent.height, cudaMemcpyDeviceToDevice));
    cudaResourceDesc resource{};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    cudaTextureDesc reading{};
    reading.addressMode[0] = reading.addressMode[1] = cudaAddressModeClamp;
    reading.filterMode = cudaFilterModeLinear;
    CHECK(cudaCreateTextureObject(&texture, &resource, &reading, nullptr));
  }
  ~Picture() {
    CHECK(cudaDestroyTextureObject(texture));
    CHECK(cudaFreeArray(array));
  }
  Picture(const Picture&) = delete;

  cudaTextureObject_t texture = 0;

 private:
  cudaArray_t array = nullptr;
};

// The value of an unbounded image at any position.
float pictureAt(float x, float y) {
  return 0.5f + 0.2f * std::sin(0.31f * x + 0.12f * y) + 0.15f * std::sin(0.23f * y - 0.07f * x) + 0.1f * std::sin(0.17f * (x + y));
}

std::vector<float> picture(Extent extent, float dx, float dy) {
  std::vector<float> values(extent.count());
  for (int i = 0; i < extent.count(); ++i) values[i] = pictureAt(i % extent.width - dx, i / extent.width - dy);
  return values;
}

// Improves the flow of one level, in place.
void improve(const Picture& first, const Picture& second, float2* flow, Extent extent, int iterations) {
  const size_t bytes = extent.count() * sizeof(float2);
  DeviceArray<float4> changes(extent.count());
  DeviceArray<float2> one(extent.count()), other(extent.count());
  for (int warping = 0; warping < warpings; ++warping) {
    differentiate<<<extent.blocks(), block>>>(first.texture, second.texture, flow, changes, extent);
    CHECK(cudaMemset(one, 0, bytes));
    for (int i = 0; i < iterations; i += 2) {
      iterate<<<extent.blocks(), block>>>(changes, one, other, extent);
      iterate<<<extent.blocks(), block>>>(changes, other, one, extent);
    }
    addTo<<<extent.blocks(), block>>>(flow, one, extent);
  }
  CHECK(cudaGetLastError());
}

// The average distance between flow and displacement, away from the edges.
float meanError(const std::vector<float2>& flow, Extent extent) {
  const int edge = extent.width / 8;
  double sum = 0;
  int count = 0;
  for (int y = edge; y < extent.height - edge; ++y)
    for (int x = edge; x < extent.width - edge; ++x, ++count)
      sum += std::hypot(flow[y * extent.width + x].x - moveX, flow[y * extent.width + x].y - moveY);
  return static_cast<float>(sum / count);
}

}  // namespace

int main(int argc, char** argv) {
  const Extent whole{argc > 2 ? std::atoi(argv[1]) : 64, argc > 2 ? std::atoi(argv[2]) : 48};
  const int iterations = argc > 3 ? std::atoi(argv[3]) : 300, multiple = 1 << (levels - 1);
  if (whole.width < 32 || whole.height < 32 || whole.width % multiple != 0 || whole.height % multiple != 0 || iterations <= 0)
    return std::fprintf(stderr, "a picture has at least 32 × 32 elements, multiples of %d\n", multiple), 2;
  std::vector<Extent> extents{whole};
  std::vector<std::unique_ptr<DeviceArray<float>>> first, second;
  first.push_back(std::make_unique<DeviceArray<float>>(picture(whole, 0, 0)));
  second.push_back(std::make_unique<DeviceArray<float>>(picture(whole, moveX, moveY)));
  for (int level = 1; level < levels; ++level) {
    const Extent larger = extents.back(), smaller{larger.width / 2, larger.height / 2};
    extents.push_back(smaller);
    for (auto* pictures : {&first, &second}) {
      pictures->push_back(std::make_unique<DeviceArray<float>>(smaller.count()));
      halve<<<smaller.blocks(), block>>>(*(*pictures)[level - 1], larger.width, *pictures->back(), smaller);
    }
  }
  auto flow = std::make_unique<DeviceArray<float2>>(std::vector<float2>(extents.back().count(), float2{0, 0}));
  for (int level = levels - 1; level >= 0; --level) {
    const Extent extent = extents[level];
    const Picture before(*first[level], extent), after(*second[level], extent);
    improve(before, after, *flow, extent, iterations);
    if (level == 1) pausePoint();
    if (level == 0) break;
    auto larger = std::make_unique<DeviceArray<float2>>(extents[level - 1].count());
    enlarge<<<extents[level - 1].blocks(), block>>>(*flow, extent, *larger, extents[level - 1]);
    flow = std::move(larger);
  }
  const float error = meanError(flow->download(), whole);
  std::printf("the flow is off by %.4f elements on average\n", error);
  return verdict("optical-flow", EXPECT(error < 0.1f));
}
