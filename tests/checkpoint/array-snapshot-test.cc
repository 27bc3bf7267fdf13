// Arrays, textures and surfaces over a suspend: their bytes, and the numbers by which a program knows its texture and surface objects.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <cstring>

#include "vgpu/snapshot/manifest.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"
#include "stub/worker/texture-handles.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

constexpr uint32_t slab = 60;
// Row sizes that divide neither a chunk nor a slab; 4 MiB and more in all.
constexpr uint64_t arrayHandle(uint32_t index) { return makeHandle(api::Kind::ARRAY, 0, 0, index); }
constexpr uint64_t volume = arrayHandle(11), small = arrayHandle(12), mipmap = 13, level = arrayHandle(14);
constexpr uint64_t width = 250, height = 70, depth = 63;
constexpr uint64_t rowBytes = width * 4;

RecordedFrame arrayCreate(uint64_t array, uint64_t w, uint64_t h, uint64_t d) {
  return makeFrame<api::Cuda::ArrayCreateParams>(0, api::Method::arrayCreate, 0, [&](auto p) {
    p.setArray(array);
    p.setShape(CUDA_ARRAY3D_DESCRIPTOR{w, h, d, CU_AD_FORMAT_UNSIGNED_INT32, 1, CUDA_ARRAY3D_SURFACE_LDST});
  });
}

RecordedFrame mipmapCreate() {
  return makeFrame<api::Cuda::MipmapCreateParams>(0, api::Method::mipmapCreate, 0, [&](auto p) {
    p.setMipmap(mipmap);
    p.setLevels(3);
    p.setShape(CUDA_ARRAY3D_DESCRIPTOR{16, 8, 0, CU_AD_FORMAT_FLOAT, 1, 0});
  });
}

RecordedFrame mipmapLevel() {
  return makeFrame<api::Cuda::ArrayPartParams>(0, api::Method::arrayPart, 0, [&](auto p) {
    p.setPart(level);
    p.setMipmap(mipmap);
    p.setIndex(1);
  });
}

RecordedFrame fromSlab(uint64_t array, uint64_t z, uint64_t w, uint64_t h) {
  return copy3d(api::Method::copy3d, api::Place::array(array), api::Place::slab(slab), w,
                [&](auto& p) { p.setHeight(h), p.setToZ(z); });
}

RecordedFrame toSlab(uint64_t array, uint64_t z, uint64_t w, uint64_t h) {
  return copy3d(api::Method::copy3dBack, api::Place::slab(slab), api::Place::array(array), w,
                [&](auto& p) { p.setHeight(h), p.setFromZ(z); });
}

RecordedFrame textureCreate(uint64_t texture, uint64_t array) {
  return makeFrame<api::Cuda::TextureCreateParams>(0, api::Method::textureCreate, 0, [&](auto p) {
    p.setTexture(texture);
    p.setArray(array);
    p.setSampling(CUDA_TEXTURE_DESC{.flags = CU_TRSF_READ_AS_INTEGER});
  });
}

RecordedFrame textureDestroy(uint64_t texture) {
  return makeFrame<api::Cuda::TextureDestroyParams>(0, api::Method::textureDestroy, 0,
                                                    [&](auto p) { p.setTexture(texture); });
}

RecordedFrame surfaceCreate(uint64_t surface, uint64_t array) {
  return makeFrame<api::Cuda::SurfaceCreateParams>(0, api::Method::surfaceCreate, 0, [&](auto p) {
    p.setSurface(surface);
    p.setArray(array);
  });
}

uint32_t wordAt(uint64_t slice, uint64_t index) { return static_cast<uint32_t>(slice * 1000003 + index * 7919 + 1); }

// Fills slices 0 to 61 of the volume; the last stays zero.
void fillVolume(TestSession& session) {
  auto* words = static_cast<uint32_t*>(static_cast<void*>(session.segment().slab(slab)));
  for (uint64_t z = 0; z + 1 < depth; ++z) {
    for (uint64_t i = 0; i < width * height; ++i) words[i] = wordAt(z, i);
    session.post(fromSlab(volume, z, rowBytes, height));
    session.require(synchronize());
  }
}

void requireVolume(TestSession& session) {
  auto* words = static_cast<const uint32_t*>(static_cast<const void*>(session.segment().slab(slab)));
  for (uint64_t z = 0; z < depth; ++z) {
    session.require(toSlab(volume, z, rowBytes, height));
    for (uint64_t i = 0; i < width * height; ++i)
      KJ_REQUIRE(words[i] == (z + 1 < depth ? wordAt(z, i) : 0), "an element of the volume", z, i, words[i]);
  }
}

// The driver assigns numbers 1 to 6. At the end 1 and 4 are free, and 2 has been assigned twice: the second time to the object made after
// the one with number 6.
void makeObjects(TestSession& session) {
  session.require(textureCreate(21, volume));
  session.require(textureCreate(22, volume));
  session.require(surfaceCreate(23, volume));
  session.require(textureCreate(24, small));
  session.require(surfaceCreate(25, small));
  session.post(textureDestroy(22));
  session.require(textureCreate(26, small));
  session.require(textureCreate(27, volume));
  session.post(textureDestroy(21));
  session.post(textureDestroy(24));
  session.require(synchronize());
}

std::map<uint64_t, uint64_t> numbersOf(stub::SessionState& on) {
  std::map<uint64_t, uint64_t> numbers;
  for (auto& [handle, object] : on.of(0).kept.of<stub::TextureHandles>(on.driver, on.physical, 0u).live()) numbers[handle] = object.value;
  return numbers;
}

std::map<uint64_t, uint64_t> numbersOf(stub::Worker& worker) {
  std::map<uint64_t, uint64_t> numbers;
  worker.runQuiesced([&](stub::SessionState& on) { numbers = numbersOf(on); });
  return numbers;
}

const std::map<uint64_t, uint64_t> expectedNumbers = {{23, 3}, {25, 5}, {26, 6}, {27, 2}};

void makeArrays(TestSession& session, stub::Worker& worker) {
  session.require(arrayCreate(volume, width, height, depth));
  session.require(arrayCreate(small, 3, 0, 0));
  session.require(mipmapCreate());
  session.require(mipmapLevel());
  makeObjects(session);
  fillVolume(session);
  std::memcpy(session.segment().slab(slab), "eight by four levels are copied", 32);
  session.post(fromSlab(level, 0, 8, 4));
  session.require(synchronize());
  worker.quiesce();
  KJ_REQUIRE(numbersOf(worker) == expectedNumbers);
}

}  // namespace

TEST_CASE("arrays and levels get their elements back, and objects the numbers that the program knows") {
  SavedSession saved(makeArrays);
  CHECK(saved.restored([&](stub::Worker& worker) {
    KJ_REQUIRE(numbersOf(worker) == expectedNumbers);
    worker.proceed();
    requireVolume(saved.session);
    saved.session.require(toSlab(level, 0, 8, 4));
    KJ_REQUIRE(std::memcmp(saved.session.segment().slab(slab), "eight by four levels are copied", 32) == 0);
    // The placeholders that restore made to fill the gaps are gone: their numbers are assigned again, though not to the next object.
    for (uint64_t handle : {28, 29, 30}) saved.session.require(textureCreate(handle, small));
    worker.quiesce();
    auto numbers = numbersOf(worker);
    KJ_REQUIRE(numbers[28] == 7 && numbers[29] == 1 && numbers[30] == 4);
  }) == "");
}

TEST_CASE("a snapshot whose textures cannot have their numbers is refused, and one with another array too") {
  SavedSession saved(makeArrays);
  std::string good = readFile(saved.path + "/manifest.json");
  auto refusal = [&](auto change) {
    forgeManifest(saved.path, change);
    std::string text = saved.restored([](stub::Worker&) {});
    writeFile(saved.path + "/manifest.json", good);
    return text;
  };
  contains(refusal([](auto& json) { json["state"]["textures"][1][2] = 3; }),
           "has the handle 4 on this device, but the program knows it by 3");
  contains(refusal([](auto& json) {
             json["state"]["textures"].push_back({99, 0, 9, 0});
           }),
           "the texture 0x63, which none of its objects creates");
  contains(refusal([](auto& json) { json["state"]["textures"][0][1] = 7; }), "state textures: row 0 is invalid");
  contains(refusal([](auto& json) { json["state"]["textures"][0][2] = uint64_t{1} << 40; }),
           "state textures: row 0 is invalid");
  contains(refusal([](auto& json) { json["state"]["arrays"][1][1] = 8; }),
           "8 bytes of the array 0xc000000000000c, but its objects create one of 12");
  contains(refusal([](auto& json) { json["state"]["arrays"][0][0] = 77; }), "no such array");
  CHECK(saved.restored([](stub::Worker&) {}) == "");
}

namespace {

constexpr uint64_t plane = arrayHandle(15);
constexpr uint64_t onVolume = 31, onMipmap = 32, onLevel = 33, onRow = 34, onRows = 35, surfaceOnVolume = 36, onPlane = 37, onKept = 38;

RecordedFrame textureOver(uint64_t texture, const CUDA_RESOURCE_DESC& resource, uint64_t mipmap = 0) {
  return makeFrame<api::Cuda::TextureCreateParams>(0, api::Method::textureCreate, 0, [&](auto p) {
    p.setTexture(texture);
    p.setMipmap(mipmap);
    p.setResource(resource);
  });
}

RecordedFrame textureOverRow(uint64_t texture, uint64_t address) {
  CUDA_RESOURCE_DESC row{.resType = CU_RESOURCE_TYPE_LINEAR};
  row.res.linear = {address, CU_AD_FORMAT_FLOAT, 1, 64};
  return textureOver(texture, row);
}

RecordedFrame textureOverRows(uint64_t texture, uint64_t address) {
  CUDA_RESOURCE_DESC rows{.resType = CU_RESOURCE_TYPE_PITCH2D};
  rows.res.pitch2D = {address, CU_AD_FORMAT_FLOAT, 1, 8, 4, 512};
  return textureOver(texture, rows);
}

RecordedFrame lease(uint64_t address) {
  return makeFrame<api::Cuda::LeaseParams>(0, api::Method::lease, 0, [&](auto p) {
    p.setAddress(address);
    p.setBytes(leaseGranularity);
  });
}

RecordedFrame endLease(uint64_t address) {
  return makeFrame<api::Cuda::EndLeaseParams>(0, api::Method::endLease, 0, [&](auto p) { p.setAddress(address); });
}

RecordedFrame arrayDestroy(uint64_t array) {
  return makeFrame<api::Cuda::ArrayDestroyParams>(0, api::Method::arrayDestroy, 0, [&](auto p) { p.setArray(array); });
}

RecordedFrame mipmapDestroy() {
  return makeFrame<api::Cuda::MipmapDestroyParams>(0, api::Method::mipmapDestroy, 0, [&](auto p) { p.setMipmap(mipmap); });
}

// Makes texture and surface objects over each kind of resource. When the session is saved, all resources but two have ended.
void makeOutlived(TestSession& session, stub::Worker& worker) {
  constexpr uint64_t kept = made::arena, ended = made::arena + leaseGranularity;
  session.require(lease(kept));
  session.require(lease(ended));
  session.require(arrayCreate(volume, width, height, depth));
  session.require(arrayCreate(plane, 3, 2, 0));
  session.require(mipmapCreate());
  session.require(mipmapLevel());
  session.require(textureCreate(onVolume, volume));
  session.require(textureOver(onMipmap, {.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY}, mipmap));
  session.require(textureCreate(onLevel, level));
  session.require(textureOverRow(onRow, ended));
  session.require(textureOverRows(onRows, ended));
  session.require(surfaceCreate(surfaceOnVolume, volume));
  session.require(textureCreate(onPlane, plane));
  session.require(textureOverRow(onKept, kept));
  session.post(arrayDestroy(volume));
  session.post(mipmapDestroy());
  session.require(endLease(ended));
  session.require(synchronize());
  worker.quiesce();
}

// The resource of the object with this handle, as the driver reports it now.
CUDA_RESOURCE_DESC resourceOf(stub::Worker& worker, uint64_t texture) {
  CUDA_RESOURCE_DESC resource{};
  worker.runQuiesced([&](stub::SessionState& on) {
    on.select(0);
    KJ_REQUIRE(on.driver.cuTexObjectGetResourceDesc(&resource, numbersOf(on).at(texture)) == CUDA_SUCCESS);
  });
  return resource;
}

}  // namespace

TEST_CASE("a texture or surface that outlives its array or its memory keeps its number, and those after it theirs") {
  SavedSession saved(makeOutlived);
  std::map<uint64_t, uint64_t> numbers;
  for (uint64_t handle = onVolume; handle <= onKept; ++handle) numbers[handle] = handle - onVolume + 1;
  const std::string second = saved.session.scratch.path + "/second";
  CHECK(saved.restored([&](stub::Worker& worker) {
    KJ_REQUIRE(numbersOf(worker) == numbers);
    KJ_REQUIRE(resourceOf(worker, onKept).res.linear.devPtr == made::arena);
    worker.proceed();
    saved.session.numberFrom(1000);
    saved.session.post(textureDestroy(onLevel));
    saved.session.require(synchronize());
    saved.session.commit();
    worker.quiesce();
    save(worker, second, saved.session.scratch.path + "/list", someIdentity(), nullptr);
  }) == "");
  CHECK(saved.session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, second, nullptr));
    saved.session.numberFrom(2000);
    for (uint64_t texture : {onVolume, onMipmap, onRow, onRows}) saved.session.post(textureDestroy(texture));
    saved.session.require(synchronize());
    for (uint64_t texture : {onVolume, onMipmap}) saved.session.require(textureCreate(texture, plane));
    worker.quiesce();
    const std::map<uint64_t, uint64_t> expected = {{onVolume, 9}, {onMipmap, 1}, {surfaceOnVolume, 6}, {onPlane, 7}, {onKept, 8}};
    KJ_REQUIRE(numbersOf(worker) == expected);
  }) == "");
}

TEST_CASE("the worker refuses textures and surfaces of handles that are no array, and of memory that is not the session's") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    auto refused = [&](RecordedFrame frame) { KJ_REQUIRE(session.call(std::move(frame)) != CUDA_SUCCESS); };
    refused(makeFrame<api::Cuda::TextureCreateParams>(0, api::Method::textureCreate, 0, [&](auto p) {
      p.setTexture(31);
      CUDA_RESOURCE_DESC memory{.resType = CU_RESOURCE_TYPE_LINEAR};
      memory.res.linear = {0x1234'5678'0000, CU_AD_FORMAT_FLOAT, 1, 64};
      p.setResource(memory);
    }));
    refused(textureCreate(31, 99));
    refused(surfaceCreate(31, mipmap));
    session.post(textureDestroy(31));
    session.require(arrayCreate(small, 3, 0, 0));  // and the worker still serves calls
  }) == "");
}
