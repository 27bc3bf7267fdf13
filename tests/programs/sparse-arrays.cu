// Sparse arrays: tiles that share memory, that are remapped to other memory, and that have none; layers, volumes, levels and mip tails.
// After the pause point the mappings are the same, and so is memory that is not mapped to any tile at the time.
#include "in-session.h"
#include "tiles.h"

namespace {

constexpr unsigned tile = 128;  // texels of 4 bytes, in both directions: docs/facts.md

__global__ void readRow(cudaTextureObject_t texture, uint32_t* out, int y) {
  out[threadIdx.x] = tex2D<uint32_t>(texture, threadIdx.x * 64.0f + 0.5f, y + 0.5f);
}

struct World {
  CUmemGenericAllocationHandle pool = makePool(2 * MiB), other = makePool(2 * MiB);
  CUarray first = makeArray(1024, 512, 0, CUDA_ARRAY3D_SPARSE), second = makeArray(1000, 300, 0, CUDA_ARRAY3D_SPARSE);
  CUarray layers = makeArray(256, 128, 3, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_LAYERED);
  CUarray volume = makeArray(64, 64, 32, CUDA_ARRAY3D_SPARSE);
  CUmipmappedArray levels{};
  CUarray level[3]{};
  CUtexObject texture{};
  CUmemGenericAllocationHandle released = makePool(2 * MiB);
};

// The tile of an array at (x, y, z), in tiles.
CUarrayMapInfo tileAt(CUarray array, unsigned x, unsigned y, CUmemGenericAllocationHandle pool = 0, uint64_t number = 0) {
  return change(array, {0, 0, x * tile, y * tile, 0, tile, tile, 1}, pool, number * tileBytes);
}

void build(World& world) {
  // Two rows of tiles of the first array, one after the other in the pool; the second array shares some of these tiles.
  check(map({change(world.first, {0, 0, 0, 0, 0, 1024, 2 * tile, 1}, world.pool, 0)}), "mapping two rows of tiles");
  check(map({tileAt(world.second, 0, 0, world.pool, 3), tileAt(world.second, 1, 0, world.pool, 9)}), "mapping tiles a second time");
  for (unsigned y = 0; y < 2; ++y)
    for (unsigned x = 0; x < 8; ++x) check(fill(world.first, x * tile, y * tile, 0, tile, tile, 100 * y + x + 1), "filling a tile");
  // A tile that is remapped to other memory, and one that is unmapped; their earlier contents stay in the pool.
  check(map({tileAt(world.first, 5, 1, world.other, 0), tileAt(world.first, 6, 0)}), "mapping other memory");
  check(fill(world.first, 5 * tile, tile, 0, tile, tile, 777), "filling a tile");
  check(map({change(world.layers, {0, 1, 0, 0, 0, 256, tile, 1}, world.other, 2 * tileBytes)}), "mapping a layer");
  check(fill(world.layers, 0, 0, 1, 256, tile, 31), "filling a layer");
  check(map({change(world.volume, {0, 0, 32, 0, 16, 32, 64, 16}, world.other, 8 * tileBytes)}), "mapping a part of a volume");
  for (unsigned z = 16; z < 32; ++z) check(fill(world.volume, 32, 0, z, 32, 64, z), "filling a slice");
  CUDA_ARRAY3D_DESCRIPTOR shape{256, 256, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE};
  CALL(cuMipmappedArrayCreate, &world.levels, &shape, 3);
  for (unsigned i = 0; i < 3; ++i) CALL(cuMipmappedArrayGetLevel, &world.level[i], world.levels, i);
  CUarrayMapInfo tail = change(world.levels, {}, world.released, 5 * tileBytes);
  tail.subresourceType = CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL;
  tail.subresource.miptail = {0, 0, tileBytes};
  const CUarrayMapInfo ofLevel = change(world.levels, {1, 0, 0, 0, 0, tile, tile, 1}, world.released, 4 * tileBytes);
  // If both are mapped in one call, a driver ignores a tail behind a level without memory.
  check(inSession ? map({ofLevel, tail}) : map({tail, ofLevel}), "mapping levels");
  check(fill(world.level[1], 0, 0, 0, tile, tile, 41), "filling a level");
  check(fill(world.level[2], 0, 0, 0, 64, 64, 42), "filling a level of the tail");
  if (inSession) CALL(cuMemRelease, world.released);  // mapped tiles keep its memory; a driver frees it
  world.texture = makeTexture(world.first);
}

bool isRight(const World& world) {
  bool ok = true;
  for (unsigned y = 0; y < 2; ++y)
    for (unsigned x = 0; x < 8; ++x) {
      const uint32_t wanted = x == 6 && y == 0 ? 0 : x == 5 && y == 1 ? 777 : 100 * y + x + 1;
      ok &= holds(world.first, x * tile, y * tile, 0, tile, tile, wanted);
    }
  ok &= holds(world.second, 0, 0, 0, tile, tile, 4) & holds(world.second, tile, 0, 0, tile, tile, 102);
  ok &= holds(world.second, 2 * tile, 0, 0, 1000 - 2 * tile, 300, 0) & holds(world.first, 0, 2 * tile, 0, 1024, 256, 0);
  ok &= holds(world.layers, 0, 0, 1, 256, tile, 31) & holds(world.layers, 0, 0, 0, 256, tile, 0) & holds(world.layers, 0, 0, 2, 256, tile, 0);
  for (unsigned z = 0; z < 32; z += 5)
    ok &= holds(world.volume, 32, 0, z, 32, 64, z < 16 ? 0 : z) & holds(world.volume, 0, 0, z, 32, 64, 0);
  ok &= holds(world.level[0], 0, 0, 0, 256, 256, 0) & holds(world.level[1], 0, 0, 0, tile, tile, 41);
  ok &= holds(world.level[2], 0, 0, 0, 64, 64, 42);
  DeviceArray<uint32_t> out(16);
  readRow<<<1, 16>>>(world.texture, out, 130);
  const auto row = out.download();
  for (int i = 0; i < 16; ++i) ok &= EXPECT(row[i] >> 16 == (i / 2 == 5 ? 777u : 101u + i / 2));
  return ok;
}

// Arrays see each other's writes, and remapped memory still has its contents.
bool tilesAreShared(World& world) {
  check(fill(world.second, tile, 0, 0, tile, tile, 5000), "filling a shared tile");
  bool ok = holds(world.first, tile, tile, 0, tile, tile, 5000) & holds(world.second, 0, 0, 0, tile, tile, 4);
  check(fill(world.first, tile, tile, 0, tile, tile, 102), "filling a shared tile");
  check(map({tileAt(world.second, 3, 1, world.pool, 13), tileAt(world.second, 4, 1, world.pool, 6)}), "mapping memory that no tile has");
  ok &= holds(world.second, 3 * tile, tile, 0, tile, tile, 106) & holds(world.second, 4 * tile, tile, 0, tile, tile, 7);
  check(map({tileAt(world.second, 3, 1), tileAt(world.second, 4, 1)}), "unmapping");
  ok &= holds(world.second, 3 * tile, tile, 0, 2 * tile, tile, 0);
  check(fill(world.second, 3 * tile, tile, 0, tile, tile, 1), "filling a tile without memory");
  return ok & holds(world.second, 3 * tile, tile, 0, tile, tile, 0);
}

bool propertiesAreThoseOfTheDevice(const World& world) {
  CUDA_ARRAY_SPARSE_PROPERTIES of{};
  int isSupported = 0;
  CALL(cuDeviceGetAttribute, &isSupported, CU_DEVICE_ATTRIBUTE_SPARSE_CUDA_ARRAY_SUPPORTED, 0);
  bool ok = EXPECT(isSupported == 1) & EXPECT(DRIVER(cuArrayGetSparseProperties)(&of, world.first) == CUDA_SUCCESS);
  ok &= EXPECT(of.tileExtent.width == tile && of.tileExtent.height == tile && of.tileExtent.depth == 1 && of.miptailSize == 0);
  CALL(cuArrayGetSparseProperties, &of, world.volume);
  ok &= EXPECT(of.tileExtent.width == 32 && of.tileExtent.height == 32 && of.tileExtent.depth == 16);
  CALL(cuMipmappedArrayGetSparseProperties, &of, world.levels);
  return ok & EXPECT(of.miptailFirstLevel == 2 && of.miptailSize == tileBytes);
}

bool isInvalid(const char* what, CUarrayMapInfo info) {
  const CUresult got = map({info});
  if (got != CUDA_ERROR_INVALID_VALUE) std::fprintf(stderr, "%s: %d\n", what, got);
  return got == CUDA_ERROR_INVALID_VALUE;
}

bool badOperationsAreRefused(World& world) {
  const CUarrayMapInfo good = tileAt(world.first, 0, 3, world.pool, 20);
  const CUmemGenericAllocationHandle plain = makePool(2 * MiB, 0);
  const CUarray notSparse = makeArray(256, 256, 0, 0);
  bool ok = true;
  auto refused = [&](const char* what, auto spoil) {
    CUarrayMapInfo info = good;
    spoil(info);
    ok &= isInvalid(what, info);
  };
  auto box = [](CUarrayMapInfo& info) -> auto& { return info.subresource.sparseLevel; };
  refused("an offset within a tile", [&](auto& info) { box(info).offsetX = 1; });
  refused("part of a tile", [&](auto& info) { box(info).extentWidth = 1; });
  refused("no tile", [&](auto& info) { box(info).extentHeight = 0; });
  refused("a place outside", [&](auto& info) { box(info).offsetY = 512; });
  refused("more than there is", [&](auto& info) { box(info).extentWidth = 2048; });
  refused("depth", [&](auto& info) { box(info).extentDepth = 2; });
  refused("another level", [&](auto& info) { box(info).level = 1; });
  refused("another layer", [&](auto& info) { box(info).layer = 1; });
  refused("an offset that is no tile of the pool", [](auto& info) { info.offset = 4096; });
  refused("memory behind the pool", [](auto& info) { info.offset = 2 * MiB; });
  refused("no device", [](auto& info) { info.deviceBitMask = 0; });
  refused("two devices", [](auto& info) { info.deviceBitMask = 3; });
  refused("flags", [](auto& info) { info.flags = 1; });
  refused("reserved words", [](auto& info) { info.reserved[1] = 1; });
  refused("no operation", [](auto& info) { info.memOperationType = static_cast<CUmemOperationType>(3); });
  if (inSession) {  // a driver crashes
    refused("no memory", [](auto& info) { info.memHandle.memHandle = 0; });
    refused("a handle of nothing", [](auto& info) { info.memHandle.memHandle = 0x12345678; });
  }
  refused("memory that has an address", [&](auto& info) { info.memHandle.memHandle = plain; });
  refused("an array that is not sparse", [&](auto& info) { info.resource.array = notSparse; });
  refused("a level of a mipmapped array", [&](auto& info) { info.resource.array = world.level[0]; });
  refused("linear memory", [](auto& info) { info.resourceType = CU_RESOURCE_TYPE_LINEAR; });
  CUarrayMapInfo unmapped = good;  // an unmapping with a memory handle
  unmapped.memOperationType = CU_MEM_OPERATION_TYPE_UNMAP;
  ok &= EXPECT(map({unmapped}) == CUDA_SUCCESS);
  ok &= EXPECT(DRIVER(cuMemMapArrayAsync)(nullptr, 1, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUarrayMapInfo list = good;
  ok &= EXPECT(DRIVER(cuMemMapArrayAsync)(&list, 0, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr address = 0;
  CALL(cuMemAddressReserve, &address, 2 * MiB, 0, 0, 0);
  ok &= EXPECT(DRIVER(cuMemMap)(address, 2 * MiB, 0, world.pool, 0) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuMemAddressFree, address, 2 * MiB);
  CUarray both;
  CUDA_ARRAY3D_DESCRIPTOR shape{256, 256, 0, CU_AD_FORMAT_FLOAT, 1, CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_SURFACE_LDST};
  ok &= EXPECT(DRIVER(cuArray3DCreate)(&both, &shape) == CUDA_ERROR_INVALID_VALUE);
  CALL(cuMemRelease, plain);
  CALL(cuArrayDestroy, notSparse);
  return ok & holds(world.first, 0, 3 * tile, 0, tile, tile, 0);
}

// A list of any length: each tile of the second array is mapped and unmapped repeatedly, and the last operation counts.
bool listsMayBeLong(World& world) {
  std::vector<CUarrayMapInfo> list;
  for (unsigned i = 0; i < 1501; ++i) list.push_back(i % 2 == 0 ? tileAt(world.second, 5, 1, world.pool, 20 + i / 2 % 7) : tileAt(world.second, 5, 1));
  bool ok = EXPECT(map(list) == CUDA_SUCCESS);
  check(fill(world.second, 5 * tile, tile, 0, tile, tile, 99), "filling a tile");
  ok &= holds(world.second, 5 * tile, tile, 0, tile, tile, 99);
  list.back().memHandle.memHandle = world.pool, list.back().offset = 4096;  // not a tile's offset
  ok &= EXPECT(map(list) == CUDA_ERROR_INVALID_VALUE);
  check(map({tileAt(world.second, 5, 1)}), "unmapping");
  return ok & holds(world.second, 5 * tile, tile, 0, tile, tile, 0);
}

// Not allowed in a capture.
bool isNotCaptured(World& world) {
  cudaStream_t stream;
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamCreate(&stream));
  CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  CUarrayMapInfo info = tileAt(world.first, 0, 3, world.pool, 20);
  bool ok = EXPECT(DRIVER(cuMemMapArrayAsync)(&info, 1, stream) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  ok &= EXPECT_ERROR(cudaStreamEndCapture(stream, &graph), cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();
  CHECK(cudaStreamDestroy(stream));
  return ok;
}

// A reset destroys arrays and pools, mapped or not; new ones can be made afterwards.
bool resetEndsAll() {
  CHECK(cudaDeviceReset());
  CHECK(cudaFree(nullptr));
  const CUmemGenericAllocationHandle pool = makePool(2 * MiB);
  const CUarray array = makeArray(256, 256, 0, CUDA_ARRAY3D_SPARSE);
  check(map({tileAt(array, 1, 1, pool, 5)}), "mapping after a reset");
  check(fill(array, tile, tile, 0, tile, tile, 6), "filling a tile after a reset");
  const bool ok = holds(array, tile, tile, 0, tile, tile, 6) & holds(array, 0, 0, 0, tile, tile, 0);
  CALL(cuMemRelease, pool);
  CALL(cuArrayDestroy, array);
  CALL(cuMemRelease, makePool(2 * MiB));
  return ok;
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  World world;
  build(world);
  bool ok = isRight(world);
  pausePoint();
  ok &= isRight(world) & tilesAreShared(world) & isRight(world);
  ok &= propertiesAreThoseOfTheDevice(world) & badOperationsAreRefused(world) & listsMayBeLong(world) & isNotCaptured(world) & isRight(world);
  ok &= resetEndsAll();
  return verdict("sparse-arrays", ok);
}
