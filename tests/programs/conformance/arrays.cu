// Arrays by the runtime: properties, memory requirements, and copies of runs (cudaMemcpyToArray), which continue in the next row.
#include "numbers.h"

#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // the copies of runs

namespace {

constexpr size_t width = 8, height = 4;
cudaArray_t array, other;
int* words;  // on the device
int host[64];
cudaStream_t stream;

void setUp() {
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  CHECK(cudaMallocArray(&array, &format, width, height));
  CHECK(cudaMallocArray(&other, &format, width, height));
  CHECK(cudaMalloc(&words, sizeof host));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int zeros[width * height] = {};
  for (cudaArray_t each : {array, other}) CHECK(cudaMemcpy2DToArray(each, 0, 0, zeros, 32, 32, height, cudaMemcpyHostToDevice));
  for (int i = 0; i < 64; ++i) host[i] = i + 1;
  CHECK(cudaMemcpy(words, host, sizeof host, cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());
}

void show(cudaArray_t one) {
  int got[width * height];
  SAY(cudaStreamSynchronize(stream));
  CHECK(cudaMemcpy2DFromArray(got, 32, one, 0, 0, 32, height, cudaMemcpyDeviceToHost));
  ARRAY(got, width * height);
}

void showFormat(const cudaChannelFormatDesc& format) {
  sayNumbers("x, y, z, w, kind", {format.x, format.y, format.z, format.w, format.f});
}

}  // namespace

SECTION(formats) {
  const cudaChannelFormatDesc formats[] = {cudaCreateChannelDesc<char>(),
                                           cudaCreateChannelDesc<uchar4>(),
                                           cudaCreateChannelDesc<short2>(),
                                           cudaCreateChannelDesc<unsigned>(),
                                           cudaCreateChannelDesc<float>(),
                                           cudaCreateChannelDesc<float4>(),
                                           cudaCreateChannelDescHalf(),
                                           cudaCreateChannelDescHalf4(),
                                           cudaCreateChannelDesc<int4>(),
                                           cudaCreateChannelDesc<ushort1>(),
                                           cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned),
                                           cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned),
                                           cudaCreateChannelDesc(64, 0, 0, 0, cudaChannelFormatKindSigned),
                                           cudaCreateChannelDesc(0, 0, 0, 0, cudaChannelFormatKindNone)};
  for (auto& format : formats) {
    showFormat(format);
    if (SAY(cudaMallocArray(&array, &format, 16, 4)) != cudaSuccess) continue;
    cudaChannelFormatDesc got{};
    SAY(cudaGetChannelDesc(&got, array));
    showFormat(got);
    cudaExtent extent{};
    unsigned flags = 77;
    SAY(cudaArrayGetInfo(nullptr, &extent, nullptr, array));
    SAY(cudaArrayGetInfo(nullptr, nullptr, &flags, array));
    sayNumbers("width, height, depth, flags", {extent.width, extent.height, extent.depth, flags});
    SAY(cudaFreeArray(array));
  }
  SAY(cudaGetLastError());
}

SECTION(requirements) {
  setUp();
  cudaArrayMemoryRequirements needed{};
  cudaMipmappedArray_t levels = nullptr;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  SAY(cudaArrayGetMemoryRequirements(&needed, array, 0));
  CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(64, 64, 0), 3));
  SAY(cudaMipmappedArrayGetMemoryRequirements(&needed, levels, 0));
  cudaArray_t later = nullptr;
  SAY(cudaMallocArray(&later, &format, 256, 256, cudaArrayDeferredMapping));
  SAY(cudaArrayGetMemoryRequirements(&needed, later, 0));
  VALUE(needed.size >= 256 * 256 * 4);
  VALUE(needed.alignment != 0 && (needed.alignment & (needed.alignment - 1)) == 0);
  SAY(cudaArrayGetMemoryRequirements(&needed, later, 99));
  SAY(cudaArrayGetMemoryRequirements(&needed, later, -1));
  unsigned flags = 77;
  SAY(cudaArrayGetInfo(nullptr, nullptr, &flags, later));
  VALUE(flags);
  cudaMipmappedArray_t laterLevels = nullptr;
  SAY(cudaMallocMipmappedArray(&laterLevels, &format, make_cudaExtent(256, 256, 0), 4, cudaArrayDeferredMapping));
  SAY(cudaMipmappedArrayGetMemoryRequirements(&needed, laterLevels, 0));
  VALUE(needed.size >= 256 * 256 * 4);
  SAY(cudaMipmappedArrayGetMemoryRequirements(&needed, laterLevels, 99));
  cudaArray_t level = nullptr;
  SAY(cudaGetMipmappedArrayLevel(&level, laterLevels, 1));
  SAY(cudaArrayGetMemoryRequirements(&needed, level, 0));
  SAY(cudaFreeMipmappedArray(laterLevels));
  SAY(cudaFreeArray(later));
  SAY(cudaGetLastError());
}

SECTION(sparse) {
  setUp();
  cudaArraySparseProperties properties{};
  cudaMipmappedArray_t levels = nullptr, tiled = nullptr;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  auto tell = [&] {
    sayNumbers("tile's width, height, depth; first level of the tail; flags",
               {properties.tileExtent.width, properties.tileExtent.height, properties.tileExtent.depth,
                properties.miptailFirstLevel, properties.flags});
    VALUE(properties.miptailSize != 0);
    properties = {};
  };
  CHECK(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(64, 64, 0), 3));
  SAY(cudaMipmappedArrayGetSparseProperties(&properties, levels));
  SAY(cudaArrayGetSparseProperties(&properties, array));
  SAY(cudaMallocMipmappedArray(&tiled, &format, make_cudaExtent(512, 512, 0), 5, cudaArraySparse));
  SAY(cudaMipmappedArrayGetSparseProperties(&properties, tiled));
  tell();
  cudaArray_t level = nullptr, flat = nullptr;
  SAY(cudaGetMipmappedArrayLevel(&level, tiled, 0));
  SAY(cudaArrayGetSparseProperties(&properties, level));
  cudaMipmappedArray_t layered = nullptr;
  SAY(cudaMallocMipmappedArray(&layered, &format, make_cudaExtent(512, 512, 3), 5, cudaArraySparse | cudaArrayLayered));
  SAY(cudaMipmappedArrayGetSparseProperties(&properties, layered));
  tell();
  SAY(cudaMallocArray(&flat, &format, 512, 512, cudaArraySparse));
  SAY(cudaArrayGetSparseProperties(&properties, flat));
  tell();
  cudaArrayMemoryRequirements needed{};
  SAY(cudaArrayGetMemoryRequirements(&needed, flat, 0));
  SAY(cudaMallocArray(&flat, &format, 512, 512, cudaArraySparse | cudaArrayDeferredMapping));
  SAY(cudaMallocArray(&flat, &format, 512, 0, cudaArraySparse));
  SAY(cudaGetLastError());
}

// From a position to the end of the row and on through the next rows.
SECTION(runs) {
  setUp();
  SAY(cudaMemcpyToArray(array, 8, 1, host, 12, cudaMemcpyHostToDevice));
  show(array);
  SAY(cudaMemcpyToArray(array, 20, 0, host + 10, 40, cudaMemcpyHostToDevice));
  show(array);
  SAY(cudaMemcpyToArrayAsync(array, 28, 1, words + 20, 40, cudaMemcpyDeviceToDevice, stream));
  show(array);
  SAY(cudaMemcpyToArrayAsync(array, 0, 0, words, 128, cudaMemcpyDefault, stream));
  show(array);
  int got[32] = {};
  SAY(cudaMemcpyFromArray(got, array, 12, 1, 48, cudaMemcpyDeviceToHost));
  ARRAY(got, 16);
  SAY(cudaMemcpyFromArrayAsync(words, array, 24, 0, 44, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemcpyFromArrayAsync(got, array, 0, 3, 32, cudaMemcpyDeviceToHost, stream));
  SAY(cudaStreamSynchronize(stream));
  ARRAY(words, 16);
  ARRAY(got, 16);
  SAY(cudaMemcpyArrayToArray(other, 4, 1, array, 20, 0, 52));
  show(other);
  SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 0, 128, cudaMemcpyDefault));
  show(other);
}

SECTION(wrongRuns) {
  setUp();
  SAY(cudaMemcpyToArray(array, 0, 0, host, 132, cudaMemcpyHostToDevice));
  show(array);  // whether the part that fits was copied
  SAY(cudaMemcpyToArray(array, 0, 3, host, 36, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 32, 0, host, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 2, 0, host, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 0, 0, host, 6, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 0, 4, host, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 0, 0, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 99, 99, host, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 0, 0, host, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyToArray(array, 0, 0, host, 4, cudaMemcpyHostToHost));
  SAY(cudaMemcpyToArray(array, 0, 0, host, 4, static_cast<cudaMemcpyKind>(9)));
  SAY(cudaMemcpyToArray(array, 0, 0, nullptr, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArrayAsync(array, 0, 3, words, 36, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemcpyToArrayAsync(array, 0, 0, words, 4, cudaMemcpyDeviceToHost, stream));
  show(array);
  int got[33] = {};
  SAY(cudaMemcpyFromArray(got, array, 0, 0, 132, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromArray(got, array, 32, 0, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromArray(got, array, 0, 4, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromArray(got, array, 2, 0, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromArray(got, array, 0, 0, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyFromArray(got, array, 0, 0, 0, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromArray(nullptr, array, 0, 0, 4, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpyFromArrayAsync(words, array, 0, 3, 36, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 0, 132));
  SAY(cudaMemcpyArrayToArray(other, 0, 3, array, 0, 0, 36));
  SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 3, 36));
  SAY(cudaMemcpyArrayToArray(other, 2, 0, array, 0, 0, 4));
  SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 0, 0));
  SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 0, 4, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyArrayToArray(array, 4, 0, array, 0, 0, 4));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGetLastError());
}

// Copies begin and end at any byte, also within an element.
SECTION(bytes) {
  setUp();
  const auto of = [](void* memory) { return static_cast<unsigned char*>(memory); };
  unsigned char* const all = of(host);
  for (int i = 0; i < 256; ++i) all[i] = static_cast<unsigned char>(i + 1);
  CHECK(cudaMemcpy(words, host, sizeof host, cudaMemcpyHostToDevice));
  unsigned char got[width * height * 4];
  auto show = [&](cudaArray_t one) {
    CHECK(cudaMemcpy2DFromArray(got, 32, one, 0, 0, 32, height, cudaMemcpyDeviceToHost));
    ARRAY(got, sizeof got);
  };
  SAY(cudaMemcpyToArray(array, 1, 0, host, 1, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyToArray(array, 31, 0, words, 6, cudaMemcpyDefault));
  SAY(cudaMemcpy2DToArray(array, 3, 2, host, 16, 7, 2, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2DToArray(array, 30, 2, host, 16, 3, 1, cudaMemcpyHostToDevice));
  show(array);
  SAY(cudaMemcpyArrayToArray(other, 5, 0, array, 1, 0, 3));
  SAY(cudaMemcpy2DArrayToArray(other, 1, 1, array, 3, 2, 5, 2));
  show(other);
  cudaChannelFormatDesc wide = cudaCreateChannelDesc<int4>();
  cudaArray_t third;
  CHECK(cudaMallocArray(&third, &wide, 2, height));
  CHECK(cudaMemcpy2DToArray(third, 0, 0, host, 32, 32, height, cudaMemcpyHostToDevice));
  SAY(cudaMemcpyArrayToArray(third, 17, 1, array, 31, 0, 6));
  show(third);
  std::memset(got, 0, sizeof got);
  SAY(cudaMemcpyFromArray(got, third, 18, 1, 3, cudaMemcpyDeviceToHost));
  SAY(cudaMemcpy2DFromArray(got + 8, 16, third, 13, 0, 5, 3, cudaMemcpyDeviceToHost));
  ARRAY(got, 48);
  SAY(cudaGetLastError());
}

// A number that is not a direction.
SECTION(noDirection) {
  setUp();
  for (int number : {5, -1}) {
    const auto none = static_cast<cudaMemcpyKind>(number);
    int got[4];
    SAY(cudaMemcpyToArray(array, 0, 0, host, 4, none));
    SAY(cudaMemcpyToArrayAsync(array, 0, 0, words, 4, none, stream));
    SAY(cudaMemcpyFromArray(got, array, 0, 0, 4, none));
    SAY(cudaMemcpyFromArrayAsync(words, array, 0, 0, 4, none, stream));
    SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, 0, 4, none));
    SAY(cudaMemcpy2DToArray(array, 0, 0, host, 4, 4, 1, none));
    SAY(cudaMemcpy2DFromArray(got, 4, array, 0, 0, 4, 1, none));
  }
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaGetLastError());
}

// Sizes that exceed the array, and sums that overflow.
SECTION(sizesOfRuns) {
  setUp();
  int got[33] = {};
  for (size_t size : {~size_t{0}, ~size_t{0} - 3, size_t{1} << 63, size_t{1} << 59, (size_t{1} << 59) + 1}) {
    SAY(cudaMemcpyToArrayAsync(array, size, 0, words, 4, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaMemcpyToArrayAsync(array, 0, size, words, 4, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaMemcpyToArrayAsync(array, 4, size, words, 40, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaMemcpyFromArrayAsync(words, array, size, 0, 4, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaMemcpyFromArray(got, array, 0, size, 4, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpyArrayToArray(other, 0, size, array, 0, 0, 4));
    SAY(cudaMemcpyArrayToArray(other, size, 0, array, 0, 0, 4));
    SAY(cudaMemcpyArrayToArray(other, 0, 0, array, 0, size, 4));
    SAY(cudaStreamSynchronize(stream));
  }
  show(array);
  show(other);
  SAY(cudaGetLastError());
}

SECTION(rectangles) {
  setUp();
  CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, height, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2DArrayToArray(other, 8, 1, array, 4, 0, 12, 2));
  show(other);
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 32, 4, cudaMemcpyDefault));
  show(other);
  SAY(cudaMemcpy2DArrayToArray(other, 4, 0, array, 0, 0, 32, 1));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 1, array, 0, 0, 32, 4));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 1, 32, 4));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 36, 1));
  SAY(cudaMemcpy2DArrayToArray(other, 2, 0, array, 0, 0, 4, 1));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 6, 1));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 0, 1));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 4, 0));
  SAY(cudaMemcpy2DArrayToArray(other, 99, 99, array, 99, 99, 0, 0));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 4, 1, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 4, 1, cudaMemcpyHostToHost));
  SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, 4, 1, static_cast<cudaMemcpyKind>(9)));
  show(other);
  SAY(cudaGetLastError());
}

// Elements of different sizes, and of the same size with different formats.
SECTION(betweenFormats) {
  setUp();
  CHECK(cudaMemcpy2DToArray(array, 0, 0, host, 32, 32, height, cudaMemcpyHostToDevice));
  cudaChannelFormatDesc pairs = cudaCreateChannelDesc<short2>(), shorts = cudaCreateChannelDesc<short>(),
                        wide = cudaCreateChannelDesc<int2>();
  cudaArray_t ofPairs = nullptr, ofShorts = nullptr, ofWide = nullptr;
  CHECK(cudaMallocArray(&ofPairs, &pairs, width, height));
  CHECK(cudaMallocArray(&ofShorts, &shorts, 2 * width, height));
  CHECK(cudaMallocArray(&ofWide, &wide, width / 2, height));
  for (cudaArray_t each : {ofPairs, ofShorts, ofWide}) {
    int zeros[32] = {};
    CHECK(cudaMemcpy2DToArray(each, 0, 0, zeros, 32, 32, height, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2DArrayToArray(each, 0, 0, array, 0, 0, 16, 2));
    SAY(cudaMemcpy2DArrayToArray(array, 0, 0, each, 0, 0, 16, 2));
    SAY(cudaMemcpyArrayToArray(each, 0, 0, array, 0, 0, 40));
    cudaMemcpy3DParms box{};
    box.srcArray = array;
    box.dstArray = each;
    box.srcPos.x = 2;
    box.dstPos.x = 2;
    box.extent = make_cudaExtent(2, 2, 1);
    box.kind = cudaMemcpyDeviceToDevice;
    SAY(cudaMemcpy3D(&box));
    box.srcArray = each;
    box.dstArray = array;
    SAY(cudaMemcpy3D(&box));
    int got[32] = {};
    SAY(cudaMemcpy2DFromArray(got, 32, each, 0, 0, 32, height, cudaMemcpyDeviceToHost));
    ARRAY(got, 32);
  }
  show(array);
  SAY(cudaGetLastError());
}

SECTION(captured) {
  setUp();
  cudaGraph_t graph = nullptr;
  size_t nodes = 0;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(cudaMemcpyToArrayAsync(array, 4, 0, words, 64, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemcpyFromArrayAsync(words, array, 0, 1, 8, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaStreamEndCapture(stream, &graph));
  if (graph == nullptr) return;
  SAY(cudaGraphGetNodes(graph, nullptr, &nodes));
  VALUE(nodes);
  cudaGraphExec_t executable = nullptr;
  SAY(cudaGraphInstantiate(&executable, graph, 0));
  SAY(cudaGraphLaunch(executable, stream));
  show(array);
  ARRAY(words, 4);
}

SECTION(surfaces) {
  setUp();
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t written = nullptr;
  CHECK(cudaMallocArray(&written, &format, width, height, cudaArraySurfaceLoadStore));
  cudaResourceDesc resource{}, got{};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = written;
  cudaSurfaceObject_t surface = 0;
  SAY(cudaCreateSurfaceObject(&surface, &resource));
  SAY(cudaGetSurfaceObjectResourceDesc(&got, surface));
  VALUE(got.resType);
  VALUE(got.res.array.array == written);
  resource.res.array.array = array;  // the array does not allow surfaces
  cudaSurfaceObject_t second = 0;
  SAY(cudaCreateSurfaceObject(&second, &resource));
  resource.resType = cudaResourceTypeLinear;
  resource.res.linear = {words, format, sizeof host};
  SAY(cudaCreateSurfaceObject(&second, &resource));
  SAY(cudaGetSurfaceObjectResourceDesc(&got, 0));
  SAY(cudaGetTextureObjectResourceDesc(&got, surface));
  SAY(cudaDestroySurfaceObject(surface));
  SAY(cudaDestroySurfaceObject(0));
  SAY(cudaGetLastError());
}

SECTION(linearTextures) {
  cudaChannelFormatDesc one = cudaCreateChannelDesc<float>(), four = cudaCreateChannelDesc<float4>();
  cudaChannelFormatDesc byte = cudaCreateChannelDesc<unsigned char>(),
                        odd = cudaCreateChannelDesc(7, 0, 0, 0, cudaChannelFormatKindFloat);
  cudaChannelFormatDesc three = cudaCreateChannelDesc(8, 8, 8, 0, cudaChannelFormatKindUnsigned);
  size_t ofOne = 0, ofFour = 0, ofByte = 0, wrong = 77;
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&ofOne, &one, 0));
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&ofFour, &four, 0));
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&ofByte, &byte, 0));
  sayNumbers("of a float, four floats, a byte", {ofOne, ofFour, ofByte});
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&wrong, &odd, 0));
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&wrong, &three, 0));
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&wrong, &one, 99));
  SAY(cudaDeviceGetTexture1DLinearMaxWidth(&wrong, &one, -1));
  VALUE(wrong);
  SAY(cudaGetLastError());
}

// Null for a required pointer: one per section, because the driver may crash.
#define NOTHING(name, call)                                  \
  SECTION(name) {                                            \
    setUp();                                                 \
    [[maybe_unused]] cudaChannelFormatDesc format{};         \
    [[maybe_unused]] cudaArrayMemoryRequirements needed{};   \
    [[maybe_unused]] cudaArraySparseProperties properties{}; \
    [[maybe_unused]] size_t size = 0;                        \
    SAY(call);                                               \
  }

NOTHING(nothingFormat, cudaGetChannelDesc(nullptr, array))
NOTHING(nothingFormatOf, cudaGetChannelDesc(&format, nullptr))
NOTHING(nothingNeeded, cudaArrayGetMemoryRequirements(nullptr, array, 0))
NOTHING(nothingNeededOf, cudaArrayGetMemoryRequirements(&needed, nullptr, 0))
NOTHING(nothingNeededOfLevels, cudaMipmappedArrayGetMemoryRequirements(&needed, nullptr, 0))
NOTHING(nothingSparseOf, cudaMipmappedArrayGetSparseProperties(&properties, nullptr))
NOTHING(nothingSparse, cudaArrayGetSparseProperties(nullptr, array))
NOTHING(nothingSurface, cudaGetSurfaceObjectResourceDesc(nullptr, 0))
NOTHING(nothingWidth, cudaDeviceGetTexture1DLinearMaxWidth(nullptr, &format, 0))
NOTHING(nothingWidthOf, cudaDeviceGetTexture1DLinearMaxWidth(&size, nullptr, 0))
NOTHING(nothingTo, cudaMemcpyToArrayAsync(nullptr, 0, 0, words, 4, cudaMemcpyDeviceToDevice, stream))
NOTHING(nothingFrom, cudaMemcpyFromArrayAsync(words, nullptr, 0, 0, 4, cudaMemcpyDeviceToDevice, stream))
NOTHING(nothingBetween, cudaMemcpyArrayToArray(other, 0, 0, nullptr, 0, 0, 4))
NOTHING(nothingRectangle, cudaMemcpy2DArrayToArray(nullptr, 0, 0, array, 0, 0, 4, 1))
