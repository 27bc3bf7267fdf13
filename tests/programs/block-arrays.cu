// Arrays of block-compressed formats: their textures; copies of some of their blocks, layers and levels; and views of blocks over integer
// arrays. Everything is read again after the pause point.
#include "driver-entry.h"

namespace {

// Blocks as in the Khronos Data Format Specification, with easily distinguished texels.
struct Bc1 {
  uint16_t first, second;
  uint32_t indices;
};
// Columns: the first endpoint, the second one, and the two interpolated colours at one and two thirds.
constexpr Bc1 redToBlue{0xf800, 0x001f, 0xd8d8d8d8u};

struct Bc7 {
  uint64_t low, high;
};
// Mode 6 with both endpoints equal: 8 bits per channel, the lowest bit shared by all channels.
Bc7 solid(uint32_t red, uint32_t green, uint32_t blue, uint32_t alpha) {
  uint64_t bits = 0x40;
  const uint32_t channels[] = {red, green, blue, alpha};
  unsigned at = 7;
  for (uint32_t channel : channels)
    for (int end = 0; end < 2; ++end, at += 7) bits |= static_cast<uint64_t>(channel >> 1) << at;
  const uint64_t lowest = red & 1;
  return {bits | lowest << 63, lowest};
}

__global__ void readTexels(cudaTextureObject_t texture, float4* out, int width, int height, int layer) {
  for (int i = threadIdx.x; i < width * height; i += blockDim.x) {
    const float x = i % width + 0.5f, y = i / width + 0.5f;
    out[i] = layer < 0 ? tex2D<float4>(texture, x, y) : tex2DLayered<float4>(texture, x, y, layer);
  }
}

CUarray makeArray(CUarray_format format, unsigned channels, size_t width, size_t height, size_t depth = 0, unsigned flags = 0) {
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR shape{width, height, depth, format, channels, flags};
  CALL(cuArray3DCreate, &array, &shape);
  return array;
}

CUDA_MEMCPY3D rowsOf(CUarray array, size_t x, size_t y, size_t z, size_t width, size_t height) {
  CUDA_MEMCPY3D copy{};
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  copy.dstArray = array;
  copy.dstXInBytes = x;
  copy.dstY = y;
  copy.dstZ = z;
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcPitch = copy.WidthInBytes = width;
  copy.Height = height;
  copy.Depth = 1;
  return copy;
}

// x in bytes, y in rows of blocks, z in layers.
CUresult put(CUarray array, const void* from, size_t x, size_t y, size_t z, size_t width, size_t height) {
  CUDA_MEMCPY3D copy = rowsOf(array, x, y, z, width, height);
  copy.srcHost = from;
  return DRIVER(cuMemcpy3D)(&copy);
}
CUresult get(CUarray array, void* to, size_t x, size_t y, size_t z, size_t width, size_t height) {
  CUDA_MEMCPY3D put = rowsOf(array, x, y, z, width, height), copy = put;
  copy.srcMemoryType = CU_MEMORYTYPE_ARRAY, copy.srcArray = put.dstArray;
  copy.srcXInBytes = x, copy.srcY = y, copy.srcZ = z;
  copy.dstMemoryType = CU_MEMORYTYPE_HOST, copy.dstArray = nullptr, copy.dstHost = to, copy.dstPitch = width;
  copy.dstXInBytes = copy.dstY = copy.dstZ = 0;
  return DRIVER(cuMemcpy3D)(&copy);
}

CUresult makeTexture(CUtexObject& texture, CUarray array, unsigned flags = 0, const CUDA_RESOURCE_VIEW_DESC* view = nullptr) {
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_ARRAY;
  resource.res.array.hArray = array;
  CUDA_TEXTURE_DESC how{};
  how.flags = flags;
  return DRIVER(cuTexObjectCreate)(&texture, &resource, &how, view);
}

std::vector<float4> texels(CUtexObject texture, int width, int height, int layer = -1) {
  DeviceArray<float4> out(static_cast<size_t>(width * height));
  readTexels<<<1, 64>>>(texture, out, width, height, layer);
  CHECK(cudaGetLastError());
  return out.download();
}

bool is(const float4& got, float x, float y, float z, float w) {
  if (got.x == x && got.y == y && got.z == z && got.w == w) return true;
  std::fprintf(stderr, "%g %g %g %g instead of %g %g %g %g\n", got.x, got.y, got.z, got.w, x, y, z, w);
  return false;
}

// The column of `redToBlue` at x.
bool isColumn(const float4& got, int x) {
  const float thirds[4][2] = {{1, 0}, {0, 1}, {170 / 255.0f, 85 / 255.0f}, {85 / 255.0f, 170 / 255.0f}};
  const int index[] = {0, 2, 1, 3};  // in 0xd8: two bits per texel
  return is(got, thirds[index[x % 4]][0], 0, thirds[index[x % 4]][1], 1);
}

constexpr int width = 30, height = 21;  // texels: 8 × 6 blocks, the last of each row and column partial
constexpr size_t rowBytes = 8 * sizeof(Bc1), rows = 6;

struct Images {
  CUarray columns = makeArray(CU_AD_FORMAT_BC1_UNORM, 4, width, height);
  CUarray layers = makeArray(CU_AD_FORMAT_BC7_UNORM, 4, 16, 8, 3, CUDA_ARRAY3D_LAYERED);
  CUarray numbers = makeArray(CU_AD_FORMAT_UNSIGNED_INT32, 2, 4, 4);
  CUmipmappedArray levels{};
  CUarray level{};
  CUtexObject columnsRead{}, layersRead{}, viewRead{};
};

void build(Images& images) {
  const std::vector<Bc1> blocks(8 * rows, redToBlue);
  check(put(images.columns, blocks.data(), 0, 0, 0, rowBytes, rows), "copying blocks");
  for (uint32_t layer = 0; layer < 3; ++layer) {
    const std::vector<Bc7> colours(8, solid(20 * layer + 2, 100, 250, 128));
    check(put(images.layers, colours.data(), 0, 0, layer, 64, 2), "copying a layer of blocks");
  }
  const std::vector<Bc1> viewed(16, redToBlue);
  check(put(images.numbers, viewed.data(), 0, 0, 0, 32, 4), "copying numbers");
  CUDA_ARRAY3D_DESCRIPTOR shape{60, 60, 0, CU_AD_FORMAT_BC4_UNORM, 1, 0};
  CALL(cuMipmappedArrayCreate, &images.levels, &shape, 5);
  CALL(cuMipmappedArrayGetLevel, &images.level, images.levels, 3);  // 7 × 7: 2 × 2 blocks
  const uint8_t ends[4][8] = {{255, 0}, {10, 20}, {77, 77}, {3, 200}};
  check(put(images.level, ends, 0, 0, 0, 16, 2), "copying a level");
  check(makeTexture(images.columnsRead, images.columns), "a texture of blocks");
  check(makeTexture(images.layersRead, images.layers), "a texture of layers of blocks");
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
  view.width = view.height = 16;
  check(makeTexture(images.viewRead, images.numbers, 0, &view), "a view of blocks over numbers");
}

bool isRight(const Images& images) {
  bool ok = true;
  const auto columns = texels(images.columnsRead, width, height);
  for (int i = 0; i < width * height && ok; ++i) ok &= isColumn(columns[i], i % width);
  for (int layer = 0; layer < 3; ++layer)
    for (const float4& got : texels(images.layersRead, 16, 8, layer))
      if (ok) ok &= is(got, (20 * layer + 2) / 255.0f, 100 / 255.0f, 250 / 255.0f, 128 / 255.0f);
  const auto viewed = texels(images.viewRead, 16, 16);
  for (int i = 0; i < 256 && ok; ++i) ok &= isColumn(viewed[i], i % 16);
  uint8_t level[4][8] = {};
  ok &= EXPECT(get(images.level, level, 0, 0, 0, 16, 2) == CUDA_SUCCESS);
  return ok & EXPECT(level[0][0] == 255 && level[1][1] == 20 && level[2][0] == 77 && level[3][1] == 200);
}

// Rows and columns count blocks; a block cannot be split.
bool copiesCountBlocks(const Images& images) {
  const Bc1 black{0, 0, 0};
  Bc1 found[2] = {};
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  bool ok = EXPECT(put(images.columns, &black, 3 * sizeof black, 1, 0, sizeof black, 1) == CUDA_SUCCESS);
  ok &= EXPECT(get(images.columns, found, 2 * sizeof black, 1, 0, sizeof found, 1) == CUDA_SUCCESS);
  ok &= EXPECT(found[0].first == 0xf800 && found[1].first == 0 && found[1].indices == 0);
  ok &= is(texels(images.columnsRead, width, height)[5 * width + 13], 0, 0, 0, 1);
  ok &= EXPECT(put(images.columns, &redToBlue, 3 * sizeof black, 1, 0, sizeof black, 1) == CUDA_SUCCESS);
  ok &= EXPECT(get(images.columns, found, 0, 0, 0, 4, 1) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(get(images.columns, found, rowBytes, 0, 0, 8, 1) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(get(images.columns, found, 0, rows, 0, 8, 1) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuArray3DGetDescriptor, &shape, images.columns);
  return ok & EXPECT(shape.Width == width && shape.Height == height && shape.Format == CU_AD_FORMAT_BC1_UNORM);
}

// The results are an H100 driver's.
bool refuses(CUresult wanted, CUarray_format format, unsigned channels, size_t height, unsigned flags) {
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR shape{64, height, 0, format, channels, flags};
  const CUresult got = DRIVER(cuArray3DCreate)(&array, &shape);
  if (got != wanted) std::fprintf(stderr, "format %#x with %u channels and flags %#x: %d instead of %d\n", format, channels, flags, got, wanted);
  return got == wanted;
}

bool whatBlocksCannotBe(const Images& images) {
  bool ok = refuses(CUDA_ERROR_NOT_SUPPORTED, CU_AD_FORMAT_BC1_UNORM, 4, 64, CUDA_ARRAY3D_SURFACE_LDST);
  ok &= refuses(CUDA_ERROR_INVALID_VALUE, CU_AD_FORMAT_BC1_UNORM, 4, 0, 0);
  ok &= refuses(CUDA_ERROR_INVALID_VALUE, CU_AD_FORMAT_BC1_UNORM, 1, 64, 0);
  ok &= refuses(CUDA_ERROR_INVALID_VALUE, CU_AD_FORMAT_BC6H_UF16, 4, 64, 0);
  ok &= refuses(CUDA_SUCCESS, CU_AD_FORMAT_BC6H_UF16, 3, 64, 0);
  ok &= refuses(CUDA_ERROR_INVALID_VALUE, static_cast<CUarray_format>(0x99999), 4, 64, 0);
  CUDA_RESOURCE_DESC resource{};
  resource.res.array.hArray = images.columns;
  CUsurfObject surface;
  ok &= EXPECT(DRIVER(cuSurfObjectCreate)(&surface, &resource) == CUDA_ERROR_INVALID_VALUE);
  CUDA_RESOURCE_VIEW_DESC view{};
  view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC1;
  view.width = view.height = 4;
  CUtexObject texture;
  ok &= EXPECT(makeTexture(texture, images.numbers, 0, &view) == CUDA_ERROR_INVALID_VALUE);
  view.width = view.height = 16;
  view.format = CU_RES_VIEW_FORMAT_UNSIGNED_BC7;
  ok &= EXPECT(makeTexture(texture, images.numbers, 0, &view) == CUDA_ERROR_INVALID_VALUE);
  const CUarray converted = makeArray(CU_AD_FORMAT_BC7_UNORM_SRGB, 4, 16, 16);
  ok &= EXPECT(makeTexture(texture, converted) == CUDA_ERROR_INVALID_VALUE);
  return ok & EXPECT(makeTexture(texture, converted, CU_TRSF_SRGB) == CUDA_SUCCESS);
}

// The same arrays with the runtime's formats.
bool runtimeKnowsBlocks() {
  const auto format = cudaCreateChannelDesc<cudaChannelFormatKindUnsignedBlockCompressed1>();
  cudaArray_t array;
  cudaChannelFormatDesc got{};
  cudaExtent extent{};
  unsigned flags = 9;
  const std::vector<Bc1> blocks(4, redToBlue);
  std::vector<Bc1> back(4);
  CHECK(cudaMallocArray(&array, &format, 8, 8));
  CHECK(cudaMemcpy2DToArray(array, 0, 0, blocks.data(), 16, 16, 2, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy2DFromArray(back.data(), 16, array, 0, 0, 16, 2, cudaMemcpyDeviceToHost));
  CHECK(cudaArrayGetInfo(&got, &extent, &flags, array));
  CHECK(cudaFreeArray(array));
  return EXPECT(back[3].indices == redToBlue.indices) & EXPECT(got.f == format.f && extent.width == 8 && flags == 0);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  Images images;
  build(images);
  bool ok = isRight(images);
  pausePoint();
  ok &= isRight(images) & copiesCountBlocks(images) & isRight(images) & whatBlocksCannotBe(images) & runtimeKnowsBlocks();
  return verdict("block-arrays", ok);
}
