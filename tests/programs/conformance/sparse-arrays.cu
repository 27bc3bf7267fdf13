// Sparse arrays, whose memory the program maps: properties, valid mappings, and errors.
#include "../tiles.h"
#include "conformance.h"

namespace {

constexpr unsigned tile = 128;

// A mapping of the first tile of a sparse array; each case changes one thing.
template <typename Change>
void mapped(const char* what, Change change) {
  static const CUarray array = makeArray(4 * tile, 2 * tile, 0, CUDA_ARRAY3D_SPARSE);
  static const CUmemGenericAllocationHandle pool = makePool(2 * MiB);
  CUarrayMapInfo info = ::change(array, {0, 0, 0, 0, 0, tile, tile, 1}, pool);
  change(info);
  say(what, map({info}));
}
#define MAPPED(change) mapped(#change, []([[maybe_unused]] CUarrayMapInfo& m) { change; })

}  // namespace

SECTION(properties) {
  CHECK(cudaFree(nullptr));
  CUDA_ARRAY_SPARSE_PROPERTIES of{};
  const CUarray plain = makeArray(64, 64, 0, 0), sparse = makeArray(300, 200, 0, CUDA_ARRAY3D_SPARSE);
  SAYCU(cuArrayGetSparseProperties, &of, sparse);
  VALUE(of.tileExtent.width);
  VALUE(of.tileExtent.height);
  VALUE(of.tileExtent.depth);
  VALUE(of.miptailFirstLevel);
  VALUE(of.miptailSize);
  VALUE(of.flags);
  SAYCU(cuArrayGetSparseProperties, &of, plain);
  SAYCU(cuArrayGetSparseProperties, nullptr, sparse);
  CUDA_ARRAY_MEMORY_REQUIREMENTS needs{};
  SAYCU(cuArrayGetMemoryRequirements, &needs, sparse, 0);
  VALUE(needs.size);
  VALUE(needs.alignment);
}

SECTION(shapes) {
  CHECK(cudaFree(nullptr));
  CUarray array;
  auto make = [&](const char* what, CUDA_ARRAY3D_DESCRIPTOR shape) { say(what, DRIVER(cuArray3DCreate)(&array, &shape)); };
  make("a row", {256, 0, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE});
  make("layers", {256, 256, 3, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED});
  make("a volume", {64, 64, 32, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE});
  make("a large cube", {512, 512, 6, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_CUBEMAP});
  make("layers of cubes", {256, 256, 12, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_CUBEMAP | CUDA_ARRAY3D_LAYERED});
  CUmipmappedArray levels;
  CUDA_ARRAY3D_DESCRIPTOR cube{512, 512, 6, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_CUBEMAP};
  SAYCU(cuMipmappedArrayCreate, &levels, &cube, 3);
  cube.Flags |= CUDA_ARRAY3D_LAYERED;
  SAYCU(cuMipmappedArrayCreate, &levels, &cube, 3);
  make("a cube", {128, 128, 6, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_CUBEMAP});
  make("bytes", {256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, CUDA_ARRAY3D_SPARSE});
  make("deferred too", {256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING});
  make("for surfaces", {256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_SURFACE_LDST});
}

SECTION(mapping) {
  CHECK(cudaFree(nullptr));
  MAPPED();
  MAPPED(m.subresource.sparseLevel.extentWidth = 4 * tile; m.subresource.sparseLevel.extentHeight = 2 * tile);
  MAPPED(m.subresource.sparseLevel.extentWidth = 5 * tile);
  MAPPED(m.subresource.sparseLevel.extentWidth = 64);
  MAPPED(m.subresource.sparseLevel.extentDepth = 0);
  MAPPED(m.subresource.sparseLevel.offsetX = 64);
  MAPPED(m.subresource.sparseLevel.offsetX = 4 * tile);
  MAPPED(m.subresource.sparseLevel.level = 1);
  MAPPED(m.subresource.sparseLevel.layer = 1);
  MAPPED(m.offset = tileBytes);
  MAPPED(m.offset = 4096);
  MAPPED(m.offset = 2 * MiB);
  MAPPED(m.deviceBitMask = 0);
  MAPPED(m.flags = 1);
  MAPPED(m.memOperationType = static_cast<CUmemOperationType>(9));
  MAPPED(m.resourceType = static_cast<CUresourcetype>(9));
  MAPPED(m.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP; m.memHandle.memHandle = 0);
  MAPPED(m.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP);
  SAY(cudaDeviceSynchronize());
}

// Copies begin and end at any byte, also within an element, across two tiles.
SECTION(bytes) {
  CHECK(cudaFree(nullptr));
  const CUarray sparse = makeArray(2 * tile, tile, 0, CUDA_ARRAY3D_SPARSE);
  const CUmemGenericAllocationHandle pool = makePool(2 * MiB);
  CHECK(static_cast<cudaError_t>(map({change(sparse, {0, 0, 0, 0, 0, 2 * tile, tile, 1}, pool)})));
  std::vector<uint32_t> words(2 * tile), got(2 * tile);
  for (size_t i = 0; i < words.size(); ++i) words[i] = 0x04030201 + 0x04040404 * static_cast<uint32_t>(i % 16);
  auto copy = [&](const char* what, size_t x, size_t width, bool isUpload, uint32_t* memory) {
    CUDA_MEMCPY3D box = boxOf(sparse, 0, 0, 0, 2 * tile, 1, isUpload, memory);
    (isUpload ? box.dstXInBytes : box.srcXInBytes) = x;
    box.WidthInBytes = width;
    say(what, DRIVER(cuMemcpy3D)(&box));
  };
  copy("zeros", 0, 8 * tile, true, got.data());
  copy("over two tiles", 4 * tile - 2, 5, true, words.data());
  copy("within an element", 7, 1, true, words.data());
  copy("too far", 8 * tile - 1, 2, true, words.data());
  copy("all", 0, 8 * tile, false, got.data());
  for (unsigned i : {0u, 1u, 2u, tile - 2, tile - 1, tile, tile + 1, 2 * tile - 1}) VALUE(got[i]);
  got.assign(2, 0);
  copy("back", 4 * tile - 1, 3, false, got.data());
  VALUE(got[0]);
}

SECTION(otherMemory) {
  CHECK(cudaFree(nullptr));
  const CUarray sparse = makeArray(4 * tile, 2 * tile, 0, CUDA_ARRAY3D_SPARSE), plain = makeArray(4 * tile, 2 * tile, 0, 0);
  const CUmemGenericAllocationHandle pool = makePool(2 * MiB), notForTiles = makePool(2 * MiB, 0);
  say("of another use", map({change(sparse, {0, 0, 0, 0, 0, tile, tile, 1}, notForTiles)}));
  say("not a sparse array", map({change(plain, {0, 0, 0, 0, 0, tile, tile, 1}, pool)}));
  say("nothing", map({}));
  CUarrayMapInfo good = change(sparse, {0, 0, 0, 0, 0, tile, tile, 1}, pool);
  SAYCU(cuMemMapArrayAsync, &good, 1, nullptr);
  SAYCU(cuMemMapArrayAsync, nullptr, 1, nullptr);
  VALUE(holds(sparse, tile, 0, 0, tile, tile, 0));
  SAYCU(cuMemMapArrayAsync, &good, 1, reinterpret_cast<CUstream>(cudaStreamPerThread));
  say("written", fill(sparse, 0, 0, 0, tile, tile, 5));
  VALUE(holds(sparse, 0, 0, 0, tile, tile, 5));
  SAY(cudaDeviceSynchronize());
}
