// Memory that a program maps to sparse arrays, over a suspend: what is kept of it, and which operations the worker refuses.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "session-fixture.h"
#include "stub/worker/execution.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

constexpr uint32_t tiledSlab = 59;
constexpr uint64_t tileOf64K = 64 * KiB;
constexpr uint64_t tiled = makeHandle(api::Kind::ARRAY, 0, 0, 21), later = makeHandle(api::Kind::ARRAY, 0, 0, 22);
constexpr uint64_t pool = makeHandle(api::Kind::PHYSICAL, 0, 0, 23), plain = makeHandle(api::Kind::PHYSICAL, 0, 0, 24);

RecordedFrame sparseArray(uint64_t array) {
  return makeFrame<api::Cuda::ArrayCreateParams>(0, api::Method::arrayCreate, 0, [&](auto p) {
    p.setArray(array);
    p.setShape(CUDA_ARRAY3D_DESCRIPTOR{512, 128, 0, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SPARSE});
  });
}

RecordedFrame physical(uint64_t handle, bool isTilePool) {
  return makeFrame<api::Cuda::PhysicalCreateParams>(0, api::Method::physicalCreate, 0, [&](auto p) {
    p.setPhysical(handle);
    p.setBytes(2 * MiB);
    p.setIsTilePool(isTilePool);
  });
}

RecordedFrame release(uint64_t handle) {
  return makeFrame<api::Cuda::PhysicalReleaseParams>(0, api::Method::physicalRelease, 0, [&](auto p) { p.setPhysical(handle); });
}

// `count` tiles from tile x on; without memory, an operation that unmaps them.
CUarrayMapInfo tiles(uint64_t array, unsigned x, unsigned count, uint64_t memory, uint64_t offset = 0) {
  CUarrayMapInfo info{};
  info.resourceType = CU_RESOURCE_TYPE_ARRAY;
  info.resource.array = fromWire<CUarray>(array);
  info.subresource.sparseLevel = {0, 0, x * 128, 0, 0, count * 128, 128, 1};
  info.memOperationType = memory != 0 ? CU_MEM_OPERATION_TYPE_MAP : CU_MEM_OPERATION_TYPE_UNMAP;
  info.memHandle.memHandle = memory;
  info.offset = offset;
  info.deviceBitMask = 1;
  return info;
}

RecordedFrame mapped(const CUarrayMapInfo& info) {
  return makeFrame<api::Cuda::ArrayMapParams>(0, api::Method::arrayMap, 0, [&](auto p) {
    std::memcpy(p.initList(sizeof info).begin(), &info, sizeof info);
  });
}

RecordedFrame row(uint64_t array, api::Method method) {
  const bool isUpload = method == api::Method::copy3d;
  const api::Place there = api::Place::array(array), slab = api::Place::slab(tiledSlab);
  return copy3d(method, isUpload ? there : slab, isUpload ? slab : there, 512 * 4, [](auto& p) { p.setHeight(128); });
}

uint32_t* words(TestSession& session) { return static_cast<uint32_t*>(static_cast<void*>(session.segment().slab(tiledSlab))); }

// Tile 1 has been mapped twice, tile 3 has been unmapped.
void makeTiles(TestSession& session, stub::Worker& worker) {
  session.require(sparseArray(tiled));
  session.require(physical(pool, true));
  session.require(mapped(tiles(tiled, 0, 4, pool)));
  session.require(mapped(tiles(tiled, 1, 1, pool, 8 * tileOf64K)));
  session.require(mapped(tiles(tiled, 3, 1, 0)));
  for (uint32_t i = 0; i < 512 * 128; ++i) words(session)[i] = i + 1;
  session.post(row(tiled, api::Method::copy3d));
  session.require(synchronize());
  worker.quiesce();
}

}  // namespace

TEST_CASE("the tiles of an array get their memory back, and unmapped tiles have none") {
  SavedSession saved(makeTiles);
  CHECK(manifestOf(readFile(saved.path + "/manifest.json"))["state"]["tiles"].size() == 3);
  CHECK(saved.restored([&](stub::Worker& worker) {
    TestSession& session = saved.session;
    worker.proceed();
    auto hasTiles = [&](uint64_t array, auto wanted) {
      session.require(row(array, api::Method::copy3dBack));
      for (uint32_t i = 0; i < 512 * 128; ++i)
        KJ_REQUIRE(words(session)[i] == wanted(i, i % 512 / 128), "a word of a sparse array", i, words(session)[i]);
    };
    hasTiles(tiled, [](uint32_t i, uint32_t tile) { return tile < 3 ? i + 1 : 0; });
    // The same memory seen through another array: tile 1's first memory is untouched, and all bytes are where they were.
    session.require(sparseArray(later));
    session.require(mapped(tiles(later, 0, 1, pool, 2 * tileOf64K)));
    session.require(mapped(tiles(later, 2, 1, pool, 8 * tileOf64K)));
    hasTiles(later, [](uint32_t i, uint32_t tile) { return tile == 0 ? i + 256 + 1 : tile == 2 ? i - 128 + 1 : 0; });
    for (uint64_t array : {tiled, later}) session.require(mapped(tiles(array, 0, 4, 0)));
    session.require(release(pool));
  }) == "");
}

TEST_CASE("a snapshot with invalid operations on tiles, or operations on missing objects, is refused") {
  SavedSession saved(makeTiles);
  const std::string good = readFile(saved.path + "/manifest.json");
  auto refusal = [&](size_t column, uint64_t value) {
    forgeManifest(saved.path, [&](auto& json) { json["state"]["tiles"][0][column] = value; });
    std::string text = saved.restored();
    writeFile(saved.path + "/manifest.json", good);
    return text;
  };
  contains(refusal(0, pool), "state tiles: row 0 is invalid");
  contains(refusal(0, tiled | uint64_t{7} << 48), "state tiles: row 0 is invalid");
  contains(refusal(3, 3), "state tiles: row 0 is invalid");
  contains(refusal(4, 2), "state tiles: row 0 is invalid");
  contains(refusal(10, uint64_t{1} << 40), "state tiles: row 0 is invalid");
  contains(refusal(1, plain), "mapping memory to an array again");
  contains(refusal(2, 2 * MiB), "mapping memory to an array again");
  contains(refusal(7, 4096), "mapping memory to an array again");
  CHECK(refusal(0, later) != "");
  CHECK(saved.restored() == "");
}

TEST_CASE("the worker refuses tile operations on memory or arrays that are not the session's or do not fit; mapped tiles keep memory") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    session.require(sparseArray(tiled));
    session.require(physical(pool, true));
    session.require(physical(plain, false));
    auto refused = [&](CUarrayMapInfo info) { KJ_REQUIRE(session.call(mapped(info)) != CUDA_SUCCESS); };
    refused(tiles(tiled, 0, 1, later));
    refused(tiles(tiled, 0, 1, plain));
    refused(tiles(later, 0, 1, pool));
    refused(tiles(pool, 0, 1, pool));
    refused(tiles(tiled, 0, 4, pool, 29 * tileOf64K));
    refused(tiles(tiled, 0, 1, pool, ~uint64_t{0} - 5));
    CUarrayMapInfo info = tiles(tiled, 0, 1, pool);
    info.subresource.sparseLevel.extentWidth = info.subresource.sparseLevel.extentHeight = 0xffffff80;
    refused(info);
    info = tiles(tiled, 0, 1, pool);
    info.deviceBitMask = 2;
    refused(info);
    info = tiles(tiled, 0, 1, pool);
    info.resourceType = CU_RESOURCE_TYPE_LINEAR;
    refused(info);
    session.require(mapped(tiles(tiled, 0, 4, pool)));
    KJ_REQUIRE(session.call(release(pool)) == CUDA_ERROR_NOT_READY);
    session.require(mapped(tiles(tiled, 0, 4, 0)));
    session.require(release(pool));
    session.require(release(plain));
  }) == "");
}
