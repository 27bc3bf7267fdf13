// Sizes that nothing has: of allocations, copies and fills, among them such whose products and sums are more than 64 bits have;
// and sizes of nothing.
#include "numbers.h"

__device__ int variable[4] = {10, 20, 30, 40};

namespace {

constexpr size_t most = ~size_t{0}, half = size_t{1} << 63, third = size_t{1} << 32;
constexpr size_t huge[] = {most, most - 100, half, half - 1, size_t{1} << 62};

constexpr size_t byteCount = 4096;
char *bytes, *others;  // on the device
char host[byteCount];  // pageable
char* pinned;
cudaStream_t stream;

void setUp() {
  CHECK(cudaMalloc(&bytes, byteCount));
  CHECK(cudaMalloc(&others, byteCount));
  CHECK(cudaMallocHost(&pinned, byteCount));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (size_t i = 0; i < byteCount; ++i) host[i] = pinned[i] = static_cast<char>(i % 100);
  CHECK(cudaMemcpy(bytes, host, byteCount, cudaMemcpyHostToDevice));
  CHECK(cudaMemset(others, 0, byteCount));
  CHECK(cudaDeviceSynchronize());
}

// What the last error and the streams say after all of it.
void end() {
  SAY(cudaGetLastError());
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaDeviceSynchronize());
}

// How many bytes of the first 4096 are not 0.
int64_t touched(const char* place) {
  std::vector<char> got(byteCount);
  CHECK(cudaMemcpy(got.data(), place, byteCount, cudaMemcpyDefault));
  int64_t count = 0;
  for (char each : got) count += each != 0;
  return count;
}

}  // namespace

SECTION(linear) {
  void* memory = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (size_t size : huge) {
    SAY(cudaMalloc(&memory, size));
    SAY(cudaMallocAsync(&memory, size, stream));
    SAY(cudaMallocAsync(&memory, size, nullptr));
    VALUE(memory != nullptr);
  }
  end();
}

SECTION(fromPools) {
  void* memory = nullptr;
  cudaMemPool_t pool = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location = {cudaMemLocationTypeDevice, 0};
  SAY(cudaMemPoolCreate(&pool, &properties));
  for (size_t size : huge) {
    SAY(cudaMallocFromPoolAsync(&memory, size, pool, stream));
    SAY(cudaMemPoolTrimTo(pool, size));
  }
  uint64_t value = most;
  SAY(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &value));
  SAY(cudaMallocFromPoolAsync(&memory, 100, pool, stream));
  SAY(cudaFreeAsync(memory, stream));
  for (size_t size : {size_t{1}, half, most}) {
    properties.maxSize = size;
    SAY(cudaMemPoolCreate(&pool, &properties));
  }
  end();
}

SECTION(pitched) {
  void* memory = nullptr;
  size_t pitch = 0;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const size_t shapes[][2] = {{most, 1},
                              {most - 100, 1},
                              {most - 511, 1},
                              {most - 1023, 1},
                              {half, 1},
                              {half, 2},
                              {1, most},
                              {1, half},
                              {512, size_t{1} << 55},
                              {512, (size_t{1} << 55) + 1},
                              {third, third},
                              {third, third + 1},
                              {size_t{1} << 33, size_t{1} << 31},
                              {most, most}};
  for (auto [width, height] : shapes) {
    sayNumbers("width, height", {width, height});
    SAY(cudaMallocPitch(&memory, &pitch, width, height));
  }
  VALUE(memory != nullptr);
  SAY(cudaMallocPitch(&memory, &pitch, 0, 0));
  VALUE(memory != nullptr);
  VALUE(pitch);
  pitch = 77;
  SAY(cudaMallocPitch(&memory, &pitch, 10, 0));
  VALUE(memory != nullptr);
  VALUE(pitch);
  end();
}

SECTION(boxesOfMemory) {
  cudaPitchedPtr memory{};
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  const cudaExtent extents[] = {
      make_cudaExtent(most, 1, 1),      make_cudaExtent(half, 1, 1),      make_cudaExtent(1, most, 1),
      make_cudaExtent(1, 1, most),      make_cudaExtent(1, third, third), make_cudaExtent(1, third, third + 1),
      make_cudaExtent(1, half, 2),      make_cudaExtent(1, 2, half),      make_cudaExtent(512, size_t{1} << 54, 2),
      make_cudaExtent(third, third, 1), make_cudaExtent(1, half + 1, 2),  make_cudaExtent(most, most, most)};
  for (auto& extent : extents) {
    sayNumbers("width, height, depth", {extent.width, extent.height, extent.depth});
    memory = {};
    SAY(cudaMalloc3D(&memory, extent));
    VALUE(memory.ptr != nullptr);
  }
  for (auto& extent : {make_cudaExtent(0, 1, 1), make_cudaExtent(1, 0, 1), make_cudaExtent(1, 1, 0), make_cudaExtent(0, 0, 0)}) {
    memory = {nullptr, 77, 77, 77};
    SAY(cudaMalloc3D(&memory, extent));
    sayNumbers("memory, pitch, xsize, ysize", {memory.ptr != nullptr, memory.pitch, memory.xsize, memory.ysize});
  }
  end();
}

SECTION(pitchedByDriver) {
  CHECK(cudaFree(nullptr));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CUdeviceptr memory = 0;
  size_t pitch = 0;
  for (unsigned element : {4u, 8u, 16u}) {
    SAYCU(cuMemAllocPitch, &memory, &pitch, most, 1, element);
    SAYCU(cuMemAllocPitch, &memory, &pitch, most - 511, 1, element);
    SAYCU(cuMemAllocPitch, &memory, &pitch, half, 2, element);
    SAYCU(cuMemAllocPitch, &memory, &pitch, 512, size_t{1} << 55, element);
    SAYCU(cuMemAllocPitch, &memory, &pitch, 1, most, element);
  }
  for (unsigned element : {0u, 1u, 3u, 32u, ~0u}) SAYCU(cuMemAllocPitch, &memory, &pitch, 100, 2, element);
  SAYCU(cuMemAllocPitch, &memory, &pitch, 0, 1, 4);
  SAYCU(cuMemAllocPitch, &memory, &pitch, 1, 0, 4);
  for (size_t size : huge) SAYCU(cuMemAlloc, &memory, size);
  end();
}

SECTION(arrays) {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int4>();
  cudaArray_t array = nullptr;
  for (size_t size : {most, half, third, size_t{1} << 60, (size_t{1} << 60) + 1}) {
    SAY(cudaMallocArray(&array, &format, size, 1));
    SAY(cudaMallocArray(&array, &format, size, 0));
    SAY(cudaMallocArray(&array, &format, 1, size));
    SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(1, 1, size), 0));
    SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(size, 0, 0), 0));
    SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(16, 0, size), cudaArrayLayered));
    SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(size, size, size), 0));
  }
  SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(0, 0, 0), 0));
  SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(0, 1, 1), 0));
  SAY(cudaMalloc3DArray(&array, &format, make_cudaExtent(1, 0, 1), 0));
  cudaMipmappedArray_t levels = nullptr;
  for (unsigned count : {0u, 1u, 5u, 6u, 99u, ~0u}) {
    VALUE(count);
    SAY(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(16, 16, 0), count));
  }
  SAY(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(most, 16, 0), 2));
  end();
}

SECTION(fillsOfLines) {
  setUp();
  for (size_t size : huge) {
    SAY(cudaMemset(others, 1, size));
    SAY(cudaMemsetAsync(others, 1, size, stream));
    SAY(cudaMemset(others + 100, 1, size));
  }
  SAY(cudaMemset(others, 1, third));
  SAY(cudaMemset(nullptr, 1, most));
  SAY(cudaMemsetAsync(nullptr, 1, 0, stream));
  end();
  VALUE(touched(others));
}

SECTION(fillsOfWords) {
  setUp();
  auto place = reinterpret_cast<CUdeviceptr>(others);
  SAYCU(cuMemsetD16, place, 1, half);
  SAYCU(cuMemsetD16, place, 1, half + 4);
  SAYCU(cuMemsetD32, place, 1, size_t{1} << 62);
  SAYCU(cuMemsetD32, place, 1, (size_t{1} << 62) + 4);
  SAYCU(cuMemsetD32, place, 1, most);
  SAYCU(cuMemsetD32Async, place, 1, (size_t{1} << 62) + 4, stream);
  SAYCU(cuMemsetD2D32, place, 64, 1, (size_t{1} << 62) + 1, 2);
  SAYCU(cuMemsetD2D32, place, 64, 1, size_t{1} << 62, 2);
  SAYCU(cuMemsetD2D16, place, 64, 1, half + 1, 2);
  SAYCU(cuMemsetD2D8, place, half, 1, 16, 3);
  end();
  VALUE(touched(others));
}

SECTION(fillsOfRows) {
  setUp();
  struct {
    size_t pitch, width, height;
  } shapes[] = {{16, 32, 2},
                {0, 16, 1},
                {0, 16, 2},
                {0, 0, 2},
                {64, 0, 2},
                {64, 16, 0},
                {0, 0, 0},
                {8, 16, 1},
                {64, most, 1},
                {most, most, 1},
                {64, 16, half},
                {64, 16, most},
                {half, 16, 2},
                {half, 16, 3},
                {most, 16, 2},
                {most, 16, most},
                {third, 16, 2},
                {third, 16, third + 1},
                {third, 16, 1},
                {size_t{1} << 31, 16, 1},
                {size_t{1} << 31, 16, 2},
                {64, 16, size_t{1} << 58},
                {64, 16, (size_t{1} << 58) + 1}};
  for (auto& shape : shapes) {
    sayNumbers("pitch, width, height", {shape.pitch, shape.width, shape.height});
    SAY(cudaMemset2D(others, shape.pitch, 1, shape.width, shape.height));
    SAY(cudaMemset2DAsync(others, shape.pitch, 1, shape.width, shape.height, stream));
  }
  SAY(cudaMemset2D(nullptr, 0, 1, 0, 0));
  SAY(cudaMemset2D(nullptr, 64, 1, 16, 2));
  end();
  VALUE(touched(others));
}

SECTION(fillsOfBoxes) {
  setUp();
  struct {
    cudaPitchedPtr memory;
    cudaExtent extent;
  } shapes[] = {{{others, 64, 64, 4}, make_cudaExtent(16, 2, 2)},
                {{others, 64, 64, 1}, make_cudaExtent(16, 2, 2)},
                {{others, 64, 64, 0}, make_cudaExtent(16, 2, 3)},
                {{others, 64, 0, 0}, make_cudaExtent(16, 2, 1)},
                {{others, 64, 8, 2}, make_cudaExtent(16, 2, 2)},
                {{others, 8, 64, 2}, make_cudaExtent(16, 2, 1)},
                {{others, 8, 64, 2}, make_cudaExtent(16, 1, 1)},
                {{others, 0, 16, 1}, make_cudaExtent(16, 1, 1)},
                {{others, 0, 16, 2}, make_cudaExtent(16, 2, 1)},
                {{others, 64, 64, 2}, make_cudaExtent(0, 2, 1)},
                {{others, 64, 64, 2}, make_cudaExtent(16, 0, 1)},
                {{others, 64, 64, 2}, make_cudaExtent(16, 2, 0)},
                {{others, 0, 0, 0}, make_cudaExtent(0, 0, 0)},
                {{nullptr, 0, 0, 0}, make_cudaExtent(0, 0, 0)},
                {{nullptr, 64, 64, 2}, make_cudaExtent(16, 2, 1)},
                {{others, 64, 64, 2}, make_cudaExtent(most, 2, 1)},
                {{others, 64, 64, 2}, make_cudaExtent(16, most, 1)},
                {{others, half, 64, 2}, make_cudaExtent(16, 2, 1)},
                {{others, half, 64, 3}, make_cudaExtent(16, 3, 1)},
                {{others, third, 64, third}, make_cudaExtent(16, 1, 2)},
                {{others, 64, 64, half}, make_cudaExtent(16, 1, 2)},
                {{others, 64, 64, size_t{1} << 58}, make_cudaExtent(16, 1, 2)},
                {{others, 64, 64, size_t{1} << 33}, make_cudaExtent(16, size_t{1} << 33, size_t{1} << 31)},
                {{others, 64, 64, half}, make_cudaExtent(16, half, 2)}};
  for (auto& shape : shapes) {
    sayNumbers("memory, pitch, xsize, ysize, width, height, depth",
               {shape.memory.ptr != nullptr, shape.memory.pitch, shape.memory.xsize, shape.memory.ysize, shape.extent.width,
                shape.extent.height, shape.extent.depth});
    CHECK(cudaMemset(others, 0, byteCount));
    CHECK(cudaDeviceSynchronize());
    SAY(cudaMemset3D(shape.memory, 1, shape.extent));
    SAY(cudaMemset3DAsync(shape.memory, 1, shape.extent, stream));
    SAY(cudaStreamSynchronize(stream));
    VALUE(touched(others));
  }
  end();
}

SECTION(copiesOfLines) {
  setUp();
  for (size_t size : huge) {
    SAY(cudaMemcpy(others, bytes, size, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpyAsync(others, bytes, size, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaMemcpy(others + 8, bytes + 8, size, cudaMemcpyDefault));
    SAY(cudaMemcpyPeer(others, 0, bytes, 0, size));
  }
  SAY(cudaMemcpy(others, bytes, third, cudaMemcpyDeviceToDevice));
  end();
  VALUE(touched(others));
}

SECTION(copiesOfRows) {
  setUp();
  struct {
    size_t toPitch, fromPitch, width, height;
  } shapes[] = {{64, 64, 16, 2},
                {8, 64, 16, 2},
                {64, 8, 16, 2},
                {8, 8, 16, 1},
                {0, 64, 16, 1},
                {64, 0, 16, 1},
                {0, 0, 16, 1},
                {0, 64, 16, 2},
                {64, 0, 16, 2},
                {64, 64, 0, 2},
                {64, 64, 16, 0},
                {0, 0, 0, 0},
                {8, 8, 16, 0},
                {half, 64, 16, 2},
                {64, half, 16, 2},
                {half, half, 16, 3},
                {most, 64, 16, 2},
                {third, 64, 16, 2},
                {third, third, 16, third + 1},
                {third, 64, 16, 1},
                {64, third, 16, 1},
                {64, 64, 16, half},
                {64, 64, 16, most},
                {64, 64, 16, size_t{1} << 58},
                {64, 64, 16, (size_t{1} << 58) + 1},
                {64, 64, most, 1},
                {most, most, most, 1},
                {most, most, most, most},
                {size_t{1} << 31, 64, 16, 1},
                {(size_t{1} << 31) - 1, 64, 16, 1}};
  for (auto& shape : shapes) {
    sayNumbers("pitches, width, height", {shape.toPitch, shape.fromPitch, shape.width, shape.height});
    CHECK(cudaMemset(others, 0, byteCount));
    CHECK(cudaDeviceSynchronize());
    SAY(cudaMemcpy2D(others, shape.toPitch, bytes + 1, shape.fromPitch, shape.width, shape.height, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DAsync(others, shape.toPitch, bytes + 1, shape.fromPitch, shape.width, shape.height, cudaMemcpyDefault,
                          stream));
    SAY(cudaStreamSynchronize(stream));
    VALUE(touched(others));
  }
  end();
}

// With memory of the program's at one end: only what is refused because of the other end, or of which nothing is copied.
SECTION(copiesOfHostRows) {
  setUp();
  struct {
    size_t toPitch, fromPitch, width, height;
  } shapes[] = {{8, 64, 16, 2}, {64, 8, 16, 2}, {64, 64, 0, 2}, {64, 64, 16, 0}, {0, 0, 0, 0},
                {8, 8, 16, 0},  {0, 0, 16, 1},  {8, 8, 16, 1},  {0, 0, 16, 2}};
  for (auto& shape : shapes) {
    sayNumbers("pitches, width, height", {shape.toPitch, shape.fromPitch, shape.width, shape.height});
    SAY(cudaMemcpy2D(others, shape.toPitch, host, shape.fromPitch, shape.width, shape.height, cudaMemcpyHostToDevice));
    SAY(cudaMemcpy2D(host, shape.toPitch, others, shape.fromPitch, shape.width, shape.height, cudaMemcpyDeviceToHost));
    SAY(cudaMemcpy2D(pinned, shape.toPitch, host, shape.fromPitch, shape.width, shape.height, cudaMemcpyHostToHost));
    SAY(cudaMemcpy2DAsync(others, shape.toPitch, pinned, shape.fromPitch, shape.width, shape.height, cudaMemcpyHostToDevice,
                          stream));
  }
  SAY(cudaMemcpy2D(nullptr, 0, nullptr, 0, 0, 0, cudaMemcpyHostToDevice));
  SAY(cudaMemcpy2D(nullptr, 64, nullptr, 64, 16, 0, cudaMemcpyHostToHost));
  SAY(cudaMemcpy2D(others, 64, host, 64, 16, 0, static_cast<cudaMemcpyKind>(9)));
  SAY(cudaMemcpy2D(others, 64, host, 64, 0, 2, static_cast<cudaMemcpyKind>(9)));
  end();
}

namespace {

// From and to the middle, so that places before it are there too.
cudaMemcpy3DParms boxOf(size_t pitch, size_t ysize, cudaExtent extent, cudaPos at = {}) {
  cudaMemcpy3DParms box{};
  box.srcPtr = {bytes + 1024, pitch, extent.width, ysize};
  box.dstPtr = {others + 1024, pitch, extent.width, ysize};
  box.srcPos = at;
  box.extent = extent;
  box.kind = cudaMemcpyDeviceToDevice;
  return box;
}

void copyBox(size_t pitch, size_t ysize, cudaExtent extent, cudaPos at = {}) {
  sayNumbers("pitch, ysize, width, height, depth, x, y, z",
             {pitch, ysize, extent.width, extent.height, extent.depth, at.x, at.y, at.z});
  CHECK(cudaMemset(others, 0, byteCount));
  CHECK(cudaDeviceSynchronize());
  cudaMemcpy3DParms box = boxOf(pitch, ysize, extent, at);
  SAY(cudaMemcpy3D(&box));
  SAY(cudaMemcpy3DAsync(&box, stream));
  SAY(cudaStreamSynchronize(stream));
  VALUE(touched(others));
}

}  // namespace

SECTION(copiesOfBoxes) {
  setUp();
  const size_t shapes[][5] = {{64, 4, 16, 2, 2}, {64, 2, 16, 2, 2}, {64, 1, 16, 2, 2}, {64, 0, 16, 2, 2}, {64, 1, 16, 2, 1},
                              {64, 0, 16, 2, 1}, {8, 2, 16, 2, 1},  {8, 2, 16, 1, 1},  {8, 1, 16, 1, 2},  {0, 1, 16, 1, 1},
                              {0, 2, 16, 2, 1},  {64, 2, 0, 2, 1},  {64, 2, 16, 0, 1}, {64, 2, 16, 2, 0}, {0, 0, 0, 0, 0}};
  for (auto [pitch, ysize, width, height, depth] : shapes) copyBox(pitch, ysize, make_cudaExtent(width, height, depth));
  end();
}

SECTION(placesOfBoxes) {
  setUp();
  const size_t places[][3] = {{48, 0, 0}, {49, 0, 0}, {60, 0, 0}, {100, 0, 0}, {0, 2, 0},
                              {0, 3, 0},  {0, 4, 0},  {0, 0, 5},  {0, 0, 100}};
  for (auto [x, y, z] : places) copyBox(64, 4, make_cudaExtent(16, 2, 1), make_cudaPos(x, y, z));
  end();
}

SECTION(sizesOfBoxes) {
  setUp();
  const size_t shapes[][5] = {{half, 2, 16, 2, 1},
                              {half, 3, 16, 3, 1},
                              {third, 4, 16, 1, 1},
                              {third, third, 16, 1, 2},
                              {64, half, 16, 1, 1},
                              {64, most, 16, 2, 2},
                              {64, size_t{1} << 58, 16, 1, 2},
                              {64, half, 16, 1, 2},
                              {64, 4, most, 1, 1},
                              {64, 4, 16, most, 1},
                              {64, 4, 16, 1, most},
                              {64, third, 16, third, third},
                              {64, 4, 16, 4, size_t{1} << 56}};
  for (auto [pitch, ysize, width, height, depth] : shapes) copyBox(pitch, ysize, make_cudaExtent(width, height, depth));
  end();
}

// Places that are before the memory's begin, as sums go, or nowhere: a section each.
#define PLACED(name, ...)                                                 \
  SECTION(name) {                                                         \
    setUp();                                                              \
    copyBox(64, 4, make_cudaExtent(16, 1, 1), make_cudaPos(__VA_ARGS__)); \
  }

PLACED(beforeInRow, most, 0, 0)
PLACED(beforeInRows, 0, most, 0)
PLACED(beforeInSlices, 0, 0, most)
PLACED(aroundInRows, 0, size_t{1} << 58, 0)
PLACED(aroundInSlices, 0, 0, size_t{1} << 56)
PLACED(lowInRows, 0, size_t{1} << 57, 0)

SECTION(copiesOfBoxesByPeers) {
  setUp();
  cudaMemcpy3DPeerParms box{};
  box.srcPtr = {bytes, 64, 16, 1};
  box.dstPtr = {others, 64, 16, 1};
  box.extent = make_cudaExtent(16, 2, 2);
  SAY(cudaMemcpy3DPeer(&box));
  box.srcPtr.ysize = box.dstPtr.ysize = 0;
  SAY(cudaMemcpy3DPeer(&box));
  box.srcPtr.ysize = box.dstPtr.ysize = 2;
  SAY(cudaMemcpy3DPeer(&box));
  SAY(cudaMemcpy3DPeerAsync(&box, stream));
  box.srcPos.x = most;
  SAY(cudaMemcpy3DPeer(&box));
  box.srcPos.x = 0;
  box.extent = make_cudaExtent(16, third, third);
  SAY(cudaMemcpy3DPeer(&box));
  box.extent = make_cudaExtent(16, 0, 2);
  SAY(cudaMemcpy3DPeer(&box));
  end();
}

SECTION(copiesByDriver) {
  setUp();
  CUDA_MEMCPY3D copy{};
  auto right = [&] {
    copy = {};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    copy.srcDevice = reinterpret_cast<CUdeviceptr>(bytes);
    copy.dstDevice = reinterpret_cast<CUdeviceptr>(others);
    copy.srcPitch = copy.dstPitch = 64;
    copy.srcHeight = copy.dstHeight = 4;
    copy.WidthInBytes = 16;
    copy.Height = 2;
    copy.Depth = 2;
  };
  right();
  SAYCU(cuMemcpy3D, &copy);
  copy.srcHeight = 1;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.dstHeight = 1;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcHeight = copy.dstHeight = 0;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcPitch = 0;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcPitch = 8;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcXInBytes = 50;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcY = 3;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcXInBytes = most;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcY = size_t{1} << 58;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.dstZ = size_t{1} << 56;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.srcPitch = third, copy.Height = copy.Depth = 1;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.Height = half;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.WidthInBytes = most;
  SAYCU(cuMemcpy3D, &copy);
  right();
  copy.Depth = most;
  SAYCU(cuMemcpy3D, &copy);
  for (int which = 0; which < 3; ++which) {
    right();
    (which == 0 ? copy.WidthInBytes : which == 1 ? copy.Height : copy.Depth) = 0;
    copy.srcPitch = 8;
    VALUE(which);
    SAYCU(cuMemcpy3D, &copy);
  }
  SAYCU(cuMemcpyDtoD, copy.dstDevice, copy.srcDevice, most);
  end();
}

// Of arrays: places and sizes count elements here, and bytes there.
SECTION(copiesOfArrays) {
  setUp();
  cudaChannelFormatDesc format = cudaCreateChannelDesc<int>();
  cudaArray_t array = nullptr, other = nullptr;
  CHECK(cudaMallocArray(&array, &format, 8, 4));
  CHECK(cudaMallocArray(&other, &format, 8, 4));
  SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, 32, 32, 4, cudaMemcpyDeviceToDevice));
  for (size_t size : {most, half, size_t{1} << 62, third}) {
    SAY(cudaMemcpy2DToArray(array, size, 0, bytes, 32, 4, 1, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DToArray(array, 0, size, bytes, 32, 4, 1, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, size, 4, 1, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, 32, size, 1, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, 32, 4, size, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DFromArray(others, 32, array, size, 0, 4, 1, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DFromArray(others, 32, array, 0, 0, 4, size, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, size, 0, 4, 1));
    SAY(cudaMemcpy2DArrayToArray(other, 0, 0, array, 0, 0, size, 1));
    cudaMemcpy3DParms box{};
    box.srcPtr = {bytes, 32, 8, 4};
    box.dstArray = array;
    box.dstPos.x = size;
    box.extent = make_cudaExtent(1, 1, 1);
    box.kind = cudaMemcpyDeviceToDevice;
    SAY(cudaMemcpy3D(&box));
    box.dstPos.x = 0;
    box.extent.width = size + 1;
    SAY(cudaMemcpy3D(&box));
    box.extent = make_cudaExtent(1, 1, size);
    SAY(cudaMemcpy3D(&box));
  }
  SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, 32, 0, 4, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, 0, 32, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy2DToArray(array, 99, 99, bytes, 32, 0, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy2DToArray(array, 0, 0, bytes, 0, 32, 1, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy2DFromArray(others, 0, array, 0, 0, 32, 1, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpy2DFromArray(others, 0, array, 0, 0, 32, 2, cudaMemcpyDeviceToDevice));
  end();
  sayArray("others", reinterpret_cast<int*>(others), 8);
}

SECTION(copiesOfSymbols) {
  setUp();
  for (size_t size : huge) {
    SAY(cudaMemcpyToSymbol(variable, bytes, size, 0, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpyToSymbol(variable, bytes, 4, size, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpyFromSymbol(others, variable, size, 8, cudaMemcpyDeviceToDevice));
    SAY(cudaMemcpyToSymbolAsync(variable, bytes, size, 1, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaMemcpyFromSymbolAsync(others, variable, 4, size, cudaMemcpyDeviceToDevice, stream));
  }
  SAY(cudaMemcpyToSymbol(variable, bytes, 0, 16, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpyToSymbol(variable, bytes, 0, 17, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpyFromSymbol(others, variable, 0, most, cudaMemcpyDeviceToDevice));
  end();
}

SECTION(nodes) {
  setUp();
  cudaGraph_t graph = nullptr;
  cudaGraphNode_t node = nullptr;
  CHECK(cudaGraphCreate(&graph, 0));
  for (size_t size : huge) {
    SAY(cudaGraphAddMemcpyNode1D(&node, graph, nullptr, 0, others, bytes, size, cudaMemcpyDeviceToDevice));
    SAY(cudaGraphAddMemcpyNodeToSymbol(&node, graph, nullptr, 0, variable, bytes, 4, size, cudaMemcpyDeviceToDevice));
    SAY(cudaGraphAddMemcpyNodeFromSymbol(&node, graph, nullptr, 0, others, variable, size, 4, cudaMemcpyDeviceToDevice));
    cudaMemsetParams fill{};
    fill.dst = others;
    fill.elementSize = 4;
    fill.width = size;
    fill.height = 1;
    SAY(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    fill.width = 4;
    fill.height = size;
    fill.pitch = 64;
    SAY(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    fill.height = 3;
    fill.pitch = size;
    SAY(cudaGraphAddMemsetNode(&node, graph, nullptr, 0, &fill));
    cudaMemcpy3DParms box = boxOf(64, 4, make_cudaExtent(16, size, 1));
    SAY(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &box));
    box = boxOf(64, size, make_cudaExtent(16, 1, 2));
    SAY(cudaGraphAddMemcpyNode(&node, graph, nullptr, 0, &box));
    cudaMemAllocNodeParams allocation{};
    allocation.poolProps.allocType = cudaMemAllocationTypePinned;
    allocation.poolProps.location.type = cudaMemLocationTypeDevice;
    allocation.bytesize = size;
    SAY(cudaGraphAddMemAllocNode(&node, graph, nullptr, 0, &allocation));
  }
  end();
}

SECTION(captures) {
  setUp();
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  SAY(cudaMemcpy2DAsync(others, 64, bytes, 64, 16, 0, cudaMemcpyDeviceToDevice, stream));
  SAY(cudaMemset2DAsync(others, 64, 1, 0, 2, stream));
  SAY(cudaMallocAsync(&memory, most, stream));
  SAY(cudaStreamEndCapture(stream, &graph));
  VALUE(graph != nullptr);
  for (int which = 0; which < 4; ++which) {
    graph = nullptr;
    VALUE(which);
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    if (which == 0) SAY(cudaMemcpyAsync(others, bytes, most, cudaMemcpyDeviceToDevice, stream));
    if (which == 1) SAY(cudaMemsetAsync(others, 1, most, stream));
    if (which == 2) SAY(cudaMemset2DAsync(others, 8, 1, 16, 2, stream));
    if (which == 3) SAY(cudaMemcpy2DAsync(others, 8, bytes, 64, 16, 2, cudaMemcpyDeviceToDevice, stream));
    SAY(cudaStreamEndCapture(stream, &graph));
    VALUE(graph != nullptr);
  }
  end();
}

SECTION(virtualMemory) {
  CHECK(cudaFree(nullptr));
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  constexpr size_t page = size_t{2} << 20;
  CUdeviceptr address = 0;
  CUmemGenericAllocationHandle memory = 0;
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  for (size_t size : {most, half, most - page + 1}) {
    SAYCU(cuMemAddressReserve, &address, size, 0, 0, 0);
    SAYCU(cuMemCreate, &memory, size, &properties, 0);
  }
  SAYCU(cuMemAddressReserve, &address, page, half, 0, 0);
  SAYCU(cuMemAddressReserve, &address, page, most, 0, 0);
  SAYCU(cuMemAddressReserve, &address, page, 3, 0, 0);
  SAYCU(cuMemAddressReserve, &address, 0, 0, 0, 0);
  SAYCU(cuMemCreate, &memory, 0, &properties, 0);
  SAYCU(cuMemAddressReserve, &address, 2 * page, 0, 0, 0);
  SAYCU(cuMemCreate, &memory, page, &properties, 0);
  SAYCU(cuMemMap, address, most - page + 1, 0, memory, 0);
  SAYCU(cuMemMap, address, page, most - page + 1, memory, 0);
  SAYCU(cuMemMap, address + page, half, 0, memory, 0);
  SAYCU(cuMemMap, address, page, 0, memory, 0);
  CUmemAccessDesc access{properties.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  SAYCU(cuMemSetAccess, address, most - page + 1, &access, 1);
  SAYCU(cuMemSetAccess, address, half, &access, 1);
  SAYCU(cuMemSetAccess, address, page, &access, 1);
  SAYCU(cuMemsetD8, address, 1, page);
  SAYCU(cuMemsetD8, address, 1, page + 1);
  SAYCU(cuMemsetD8, address, 1, most);
  SAYCU(cuMemUnmap, address, half);
  SAYCU(cuMemUnmap, address, most - page + 1);
  SAYCU(cuMemAddressFree, address, most - page + 1);
  SAYCU(cuMemUnmap, address, page);
  end();
}

SECTION(ranges) {
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  char* memory = nullptr;
  CHECK(cudaMallocManaged(&memory, byteCount));
  cudaMemLocation device{cudaMemLocationTypeDevice, 0};
  int value = 0;
  for (size_t size : {most, half, most - 4095, size_t{0}}) {
    SAY(cudaMemPrefetchAsync(memory, size, device, 0, stream));
    SAY(cudaMemAdvise(memory, size, cudaMemAdviseSetReadMostly, device));
    SAY(cudaMemRangeGetAttribute(&value, sizeof value, cudaMemRangeAttributeReadMostly, memory, size));
    SAY(cudaStreamAttachMemAsync(stream, memory, size, cudaMemAttachSingle));
  }
  end();
}

// Of the host's memory: a section each, as sizes of pages go beyond what there is.
static void allocateHost(size_t size) {
  void* memory = nullptr;
  SAY(cudaHostAlloc(&memory, size, cudaHostAllocDefault));
  VALUE(memory != nullptr);
  SAY(cudaHostAlloc(&memory, size, cudaHostAllocMapped | cudaHostAllocPortable));
  SAY(cudaMallocHost(&memory, size));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}
SECTION(hostAll) { allocateHost(most); }
SECTION(hostAlmostAll) { allocateHost(most - 100); }
SECTION(hostPages) { allocateHost(most - 4095); }
SECTION(hostBelowPages) { allocateHost(most - 4096); }
SECTION(hostHalf) { allocateHost(half); }
SECTION(hostLess) { allocateHost(size_t{1} << 60); }

static void allocateManaged(size_t size) {
  void* memory = nullptr;
  SAY(cudaMallocManaged(&memory, size, cudaMemAttachGlobal));
  VALUE(memory != nullptr);
  SAY(cudaMallocManaged(&memory, size, cudaMemAttachHost));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}
SECTION(managedAll) { allocateManaged(most); }
SECTION(managedAlmostAll) { allocateManaged(most - 100); }
SECTION(managedPages) { allocateManaged(most - 4095); }
SECTION(managedBlocks) { allocateManaged(most - (size_t{2} << 20) + 1); }
SECTION(managedHalf) { allocateManaged(half); }

static void registerHost(size_t size) {
  auto* memory = static_cast<char*>(aligned_alloc(4096, 8192));
  std::memset(memory, 0, 8192);
  SAY(cudaHostRegister(memory, size, cudaHostRegisterDefault));
  SAY(cudaHostUnregister(memory));
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
}
SECTION(registeredAll) { registerHost(most); }
SECTION(registeredToTheEnd) { registerHost(most - 100); }
SECTION(registeredHalf) { registerHost(half); }

// An offset before a variable's begin, as sums go.
SECTION(beforeSymbols) {
  setUp();
  SAY(cudaMemcpyToSymbol(variable, bytes, 4, most - 3, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpyFromSymbol(others, variable, 8, most - 3, cudaMemcpyDeviceToDevice));
  end();
}

// Far beyond all memory.
PLACED(nowhereInRows, 0, size_t{1} << 42, 0)
PLACED(nowhereInSlices, 0, 0, size_t{1} << 40)
