// Arrays for video: with several planes, each an array of its own, and with packed elements; normalized formats; and the flags that arrays
// accept. Their contents are read again after the pause point, through handles from before it.
#include "driver-entry.h"
#include "in-session.h"

namespace {

CUresult tryArray(CUarray& array, CUarray_format format, unsigned channels, size_t width, size_t height, size_t depth, unsigned flags) {
  CUDA_ARRAY3D_DESCRIPTOR shape{width, height, depth, format, channels, flags};
  return DRIVER(cuArray3DCreate)(&array, &shape);
}
CUarray makeArray(CUarray_format format, unsigned channels, size_t width, size_t height, unsigned flags) {
  CUarray array;
  check(tryArray(array, format, channels, width, height, 0, flags), "cuArray3DCreate");
  return array;
}

CUresult copy(CUarray array, void* host, size_t width, size_t height, bool isUpload) {
  CUDA_MEMCPY2D how{};
  how.WidthInBytes = width;
  how.Height = height;
  (isUpload ? how.srcMemoryType : how.dstMemoryType) = CU_MEMORYTYPE_HOST;
  (isUpload ? how.dstMemoryType : how.srcMemoryType) = CU_MEMORYTYPE_ARRAY;
  (isUpload ? how.dstArray : how.srcArray) = array;
  how.srcHost = how.dstHost = host;
  how.srcPitch = how.dstPitch = width;
  return DRIVER(cuMemcpy2D)(&how);
}

std::vector<uint8_t> pattern(size_t bytes, unsigned seed) {
  std::vector<uint8_t> values(bytes);
  for (size_t i = 0; i < bytes; ++i) values[i] = static_cast<uint8_t>(i * 7 + seed * 31 + i / 97);
  return values;
}

struct Plane {
  CUarray array{};
  size_t width = 0, height = 0;  // bytes, rows
};

struct Image {
  CUarray whole{};
  std::vector<Plane> planes;
  unsigned seed = 0;
};

// Planes of a format as an H100 describes them: the same flags, integers of 8 or 16 bits.
Image makeImage(CUarray_format format, size_t width, size_t height, unsigned seed) {
  Image image{makeArray(format, 3, width, height, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE), {}, seed};
  CUarray array;
  for (unsigned i = 0; DRIVER(cuArrayGetPlane)(&array, image.whole, i) == CUDA_SUCCESS; ++i) {
    CUDA_ARRAY3D_DESCRIPTOR shape{};
    CALL(cuArray3DGetDescriptor, &shape, array);
    const size_t bytes = shape.Format == CU_AD_FORMAT_UNSIGNED_INT8 ? 1 : 2;
    image.planes.push_back({array, shape.Width * shape.NumChannels * bytes, shape.Height});
    auto values = pattern(image.planes[i].width * shape.Height, seed + i);
    check(copy(array, values.data(), image.planes[i].width, shape.Height, true), "copying into a plane");
  }
  return image;
}

bool isRight(const Image& image) {
  bool ok = true;
  for (unsigned i = 0; i < image.planes.size(); ++i) {
    const Plane& plane = image.planes[i];
    std::vector<uint8_t> found(plane.width * plane.height);
    CUarray again{};
    ok &= EXPECT(copy(plane.array, found.data(), plane.width, plane.height, false) == CUDA_SUCCESS);
    ok &= EXPECT(found == pattern(found.size(), image.seed + i));
    ok &= EXPECT(DRIVER(cuArrayGetPlane)(&again, image.whole, i) == CUDA_SUCCESS && again == plane.array);
    cudaArray_t ofRuntime{};  // the same handle
    CHECK(cudaArrayGetPlane(&ofRuntime, reinterpret_cast<cudaArray_t>(image.whole), i));
    ok &= EXPECT(reinterpret_cast<CUarray>(ofRuntime) == plane.array);
  }
  return ok;
}

bool hasPlanes(const Image& image, std::initializer_list<std::pair<size_t, size_t>> wanted) {
  bool ok = EXPECT(image.planes.size() == wanted.size());
  size_t i = 0;
  for (auto [width, height] : wanted) {
    ok = ok && EXPECT(image.planes[i].width == width && image.planes[i].height == height);
    ++i;
  }
  return ok;
}

// A multi-planar array has no elements itself, and its planes are destroyed with it.
bool planesBelongToTheWhole() {
  Image image = makeImage(CU_AD_FORMAT_NV12, 64, 48, 5);
  uint8_t byte = 0;
  CUarray array;
  CUDA_ARRAY3D_DESCRIPTOR shape{};
  CUtexObject texture;
  CUDA_TEXTURE_DESC how{};
  CUDA_RESOURCE_DESC resource{};
  resource.res.array.hArray = image.whole;
  bool ok = EXPECT(copy(image.whole, &byte, 1, 1, false) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuTexObjectCreate)(&texture, &resource, &how, nullptr) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuArrayGetPlane)(&array, image.whole, 2) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuArrayGetPlane)(&array, image.planes[0].array, 0) == CUDA_ERROR_INVALID_VALUE);
  ok &= EXPECT(DRIVER(cuArrayDestroy)(image.planes[1].array) == CUDA_SUCCESS) & isRight(image);
  ok &= EXPECT(DRIVER(cuArray3DGetDescriptor)(&shape, image.planes[1].array) == CUDA_SUCCESS);
  ok &= EXPECT(shape.Width == 32 && shape.NumChannels == 2 && shape.Flags == CUDA_ARRAY3D_VIDEO_ENCODE_DECODE);
  CALL(cuArrayDestroy, image.whole);
  if (inSession) ok &= EXPECT(DRIVER(cuArray3DGetDescriptor)(&shape, image.planes[0].array) != CUDA_SUCCESS);  // a driver crashes
  return ok;
}

struct Refusal {
  CUarray_format format;
  unsigned channels;
  size_t width, height, depth;
  unsigned flags;
  CUresult wanted;
};

// The results are an H100 driver's.
bool driverLooksAtShapes() {
  constexpr unsigned video = CUDA_ARRAY3D_VIDEO_ENCODE_DECODE, surface = CUDA_ARRAY3D_SURFACE_LDST;
  const Refusal cases[] = {
      {CU_AD_FORMAT_NV12, 3, 64, 64, 0, 0, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_NV12, 2, 64, 64, 0, video, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_NV12, 3, 61, 61, 0, video, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_NV12, 3, 64, 64, 0, video | surface, CUDA_SUCCESS},
      {CU_AD_FORMAT_YUY2, 4, 64, 64, 0, 0, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_YUY2, 4, 64, 64, 0, video, CUDA_SUCCESS},
      {CU_AD_FORMAT_UNSIGNED_INT8, 4, 61, 61, 0, video, CUDA_SUCCESS},
      {CU_AD_FORMAT_UNSIGNED_INT8, 4, 64, 64, 0, CUDA_ARRAY3D_DEPTH_TEXTURE, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_FLOAT, 1, 64, 64, 0, CUDA_ARRAY3D_DEPTH_TEXTURE, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_UNSIGNED_INT8, 4, 64, 64, 0, CUDA_ARRAY3D_COLOR_ATTACHMENT, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_UNSIGNED_INT8, 4, 64, 64, 0, 0x200, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_UNSIGNED_INT8, 3, 64, 64, 0, 0, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_UNORM_INT8X4, 2, 64, 64, 0, 0, CUDA_ERROR_INVALID_VALUE},
      {CU_AD_FORMAT_UNORM_INT_101010_2, 4, 64, 64, 0, surface, CUDA_SUCCESS},
  };
  bool ok = true;
  for (const Refusal& each : cases) {
    CUarray array;
    const CUresult got = tryArray(array, each.format, each.channels, each.width, each.height, each.depth, each.flags);
    if (got == CUDA_SUCCESS) CALL(cuArrayDestroy, array);
    ok &= got == each.wanted;
    if (got != each.wanted) std::fprintf(stderr, "format %#x, flags %#x: %d instead of %d\n", each.format, each.flags, got, each.wanted);
  }
  return ok;
}

__global__ void readOne(cudaTextureObject_t texture, float4* out) { *out = tex2D<float4>(texture, 0.5f, 0.5f); }

// Normalized elements are read as fractions, whatever the texture's read mode.
bool normalizedFormatsAreFractions(CUarray ten, CUarray signedBytes) {
  const struct {
    CUarray array;
    float4 wanted;
  } cases[] = {{ten, make_float4(768 / 1023.0f, 897 / 1023.0f, 336 / 1023.0f, 0)}, {signedBytes, make_float4(-1, 1, 7 / 127.0f, 0)}};
  bool ok = true;
  for (auto& each : cases)
    for (unsigned flags : {0u, unsigned{CU_TRSF_READ_AS_INTEGER}}) {
      CUDA_RESOURCE_DESC resource{};
      resource.res.array.hArray = each.array;
      CUDA_TEXTURE_DESC how{};
      how.flags = flags;
      CUtexObject texture;
      DeviceArray<float4> out(1);
      CALL(cuTexObjectCreate, &texture, &resource, &how, nullptr);
      readOne<<<1, 1>>>(texture, out);
      const float4 got = out.download()[0];
      ok &= EXPECT(got.x == each.wanted.x && got.y == each.wanted.y && got.z == each.wanted.z && got.w == each.wanted.w);
      CALL(cuTexObjectDestroy, texture);
    }
  return ok;
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  const Image images[] = {makeImage(CU_AD_FORMAT_NV12, 62, 46, 1), makeImage(CU_AD_FORMAT_P010, 64, 32, 2),
                          makeImage(CU_AD_FORMAT_P216, 64, 32, 3), makeImage(CU_AD_FORMAT_Y444_PLANAR8, 48, 40, 4),
                          makeImage(CU_AD_FORMAT_YUV444_16bit_SemiPlanar, 48, 40, 6)};
  const CUarray packed = makeArray(CU_AD_FORMAT_Y416, 4, 64, 32, CUDA_ARRAY3D_VIDEO_ENCODE_DECODE);
  auto values = pattern(64 * 8 * 32, 9);
  check(copy(packed, values.data(), 64 * 8, 32, true), "copying packed elements");
  const CUarray ten = makeArray(CU_AD_FORMAT_UNORM_INT_101010_2, 4, 1, 1, 0);
  const CUarray signedBytes = makeArray(CU_AD_FORMAT_SNORM_INT8X4, 4, 1, 1, 0);
  uint32_t word = 0x150e0700, bytes = 0x00077f80;
  check(copy(ten, &word, 4, 1, true), "copying an element");
  check(copy(signedBytes, &bytes, 4, 1, true), "copying an element");
  bool ok = hasPlanes(images[0], {{62, 46}, {62, 23}}) & hasPlanes(images[1], {{128, 32}, {128, 16}});
  ok &= hasPlanes(images[2], {{128, 32}, {128, 32}}) & hasPlanes(images[3], {{48, 40}, {48, 40}, {48, 40}});
  ok &= hasPlanes(images[4], {{96, 40}, {192, 40}});
  pausePoint();
  for (const Image& image : images) ok &= isRight(image);
  std::vector<uint8_t> found(values.size());
  ok &= EXPECT(copy(packed, found.data(), 64 * 8, 32, false) == CUDA_SUCCESS && found == values);
  ok &= normalizedFormatsAreFractions(ten, signedBytes) & planesBelongToTheWhole() & driverLooksAtShapes();
  return verdict("plane-arrays", ok);
}
