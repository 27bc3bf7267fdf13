// Tensor maps: how the driver encodes its arguments, and which it refuses. ptx-bulk.cc tests their use in kernels.
#include <cstring>
#include <functional>

#include "driver-fixture.h"

namespace vgpu::test {
namespace {

// Valid arguments of a map, which tests then make invalid.
struct Arguments {
  alignas(64) CUtensorMap maps[2] = {};
  CUtensorMap* map = maps;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 3;
  uint64_t address = 0x4c0000000000;
  cuuint64_t extents[5] = {64, 32, 16, 8, 4}, strides[4] = {128, 4096, 65536, 524288};
  cuuint32_t box[5] = {64, 8, 4, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  int lower[3] = {-1, -1, -1}, upper[3] = {-1, -1, -1};
  cuuint32_t channels = 64, pixels = 32;
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  void* pointer() const { return reinterpret_cast<void*>(address); }
  CUresult tiled() {
    return cuTensorMapEncodeTiled(map, type, rank, pointer(), extents, strides, box, steps, interleave, swizzle, promotion, fill);
  }
  CUresult pixelwise() {
    return cuTensorMapEncodeIm2col(map, type, rank, pointer(), extents, strides, lower, upper, channels, pixels, steps,
                                   interleave, swizzle, promotion, fill);
  }
};

struct Spoiled {
  const char* what;
  std::function<void(Arguments&)> spoil;
};

}  // namespace

TEST_CASE("tensor maps of any number of dimensions are encoded, and contain their arguments") {
  REQUIRE_CUDA(cuInit(0));
  for (cuuint32_t rank = 1; rank <= 5; ++rank) {
    Arguments given;
    given.rank = rank;
    CHECK_CUDA(given.tiled());
    const CUtensorMap first = given.maps[0];
    given.extents[0] += 8;
    CHECK_CUDA(given.tiled());
    CHECK(std::memcmp(&first, given.maps, sizeof first) != 0);
    if (rank < 3) continue;
    CHECK_CUDA(given.pixelwise());
    CHECK(std::memcmp(&first, given.maps, sizeof first) != 0);
  }
}

TEST_CASE("arguments that cuda.h does not allow for tensor maps are refused, and no map is written") {
  REQUIRE_CUDA(cuInit(0));
  const Spoiled both[] = {
      {"no map", [](Arguments& a) { a.map = nullptr; }},
      {"a map that is not aligned",
       [](Arguments& a) { a.map = reinterpret_cast<CUtensorMap*>(reinterpret_cast<char*>(a.maps) + 8); }},
      {"an unknown type", [](Arguments& a) { a.type = static_cast<CUtensorMapDataType>(16); }},
      {"no dimension", [](Arguments& a) { a.rank = 0; }},
      {"six dimensions", [](Arguments& a) { a.rank = 6; }},
      {"an address of 8 bytes", [](Arguments& a) { a.address += 8; }},
      {"no extent", [](Arguments& a) { a.extents[1] = 0; }},
      {"an extent above 2^32", [](Arguments& a) { a.extents[2] = (uint64_t{1} << 32) + 1; }},
      {"a stride of 8 bytes", [](Arguments& a) { a.strides[0] = 136; }},
      {"a stride of 2^40", [](Arguments& a) { a.strides[1] = uint64_t{1} << 40; }},
      {"no step", [](Arguments& a) { a.steps[1] = 0; }},
      {"a step of nine", [](Arguments& a) { a.steps[2] = 9; }},
      {"an unknown interleave", [](Arguments& a) { a.interleave = static_cast<CUtensorMapInterleave>(3); }},
      {"an unknown swizzle", [](Arguments& a) { a.swizzle = static_cast<CUtensorMapSwizzle>(7); }},
      {"rows longer than the swizzle", [](Arguments& a) { a.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; }},
      {"an unknown promotion", [](Arguments& a) { a.promotion = static_cast<CUtensorMapL2promotion>(4); }},
      {"an unknown fill", [](Arguments& a) { a.fill = static_cast<CUtensorMapFloatOOBfill>(2); }},
      {"NaNs among whole numbers", [](Arguments& a) {
         a.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
         a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
       }}};
  const Spoiled tiled[] = {{"an empty box", [](Arguments& a) { a.box[2] = 0; }},
                           {"a box of 257", [](Arguments& a) { a.box[1] = 257; }},
                           {"rows of 8 bytes", [](Arguments& a) { a.box[0] = 4; }},
                           {"rows of 40 bytes", [](Arguments& a) { a.box[0] = 20; }}};
  const Spoiled pixelwise[] = {{"two dimensions", [](Arguments& a) { a.rank = 2; }},
                               {"no pixel", [](Arguments& a) { a.pixels = 0; }},
                               {"1025 pixels", [](Arguments& a) { a.pixels = 1025; }},
                               {"257 channels", [](Arguments& a) { a.channels = 264; }},
                               {"no channel", [](Arguments& a) { a.channels = 0; }},
                               {"a corner too far out",
                                [](Arguments& a) {
                                  a.rank = 4;
                                  a.lower[1] = -129;
                                }},
                               {"corners with nothing between them", [](Arguments& a) { a.upper[0] = -33; }}};
  const auto refuses = [](const Spoiled& row, CUresult (Arguments::*make)()) {
    CAPTURE(row.what);
    Arguments given;
    row.spoil(given);
    const CUtensorMap none{};
    CHECK_ANSWER((given.*make)(), CUDA_ERROR_INVALID_VALUE);
    CHECK(std::memcmp(given.maps, &none, sizeof none) == 0);
  };
  for (const Spoiled& row : both) refuses(row, &Arguments::tiled), refuses(row, &Arguments::pixelwise);
  for (const Spoiled& row : tiled) refuses(row, &Arguments::tiled);
  for (const Spoiled& row : pixelwise) refuses(row, &Arguments::pixelwise);
}

TEST_CASE("interleaved tensor maps have units of 16 or 32 bytes, to which address and strides must be aligned") {
  REQUIRE_CUDA(cuInit(0));
  for (auto layout : {CU_TENSOR_MAP_INTERLEAVE_16B, CU_TENSOR_MAP_INTERLEAVE_32B}) {
    Arguments given;
    given.interleave = layout;
    CHECK_CUDA(given.tiled());
    CHECK_CUDA(given.pixelwise());
    auto checkHalf = [&] {  // half of a large unit
      if (layout == CU_TENSOR_MAP_INTERLEAVE_32B) CHECK_ANSWER(given.tiled(), CUDA_ERROR_INVALID_VALUE);
      else CHECK_CUDA(given.tiled());
    };
    given.address += 16;
    checkHalf();
    given.address -= 16;
    given.strides[0] += 16;
    checkHalf();
    given.rank = 2;
    CHECK_ANSWER(given.tiled(), CUDA_ERROR_INVALID_VALUE);
  }
}

TEST_CASE("packed elements of tensor maps are not supported") {
  REQUIRE_CUDA(cuInit(0));
  Arguments given;
  given.type = CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B;
  CHECK_ANSWER(given.tiled(), CUDA_ERROR_NOT_SUPPORTED);
}

TEST_CASE("a tensor map's address can be replaced, and only a tensor map's") {
  REQUIRE_CUDA(cuInit(0));
  Arguments given;
  REQUIRE_CUDA(given.tiled());
  given.maps[1] = given.maps[0];
  CHECK_CUDA(cuTensorMapReplaceAddress(given.maps, reinterpret_cast<void*>(given.address + 4096)));
  CHECK(std::memcmp(&given.maps[0], &given.maps[1], sizeof given.maps[0]) != 0);
  CHECK_CUDA(cuTensorMapReplaceAddress(given.maps, given.pointer()));
  CHECK(std::memcmp(&given.maps[0], &given.maps[1], sizeof given.maps[0]) == 0);
  CHECK_ANSWER(cuTensorMapReplaceAddress(given.maps, reinterpret_cast<void*>(given.address + 8)), CUDA_ERROR_INVALID_VALUE);
  CHECK_ANSWER(cuTensorMapReplaceAddress(nullptr, given.pointer()), CUDA_ERROR_INVALID_VALUE);
  given.maps[0] = {};
  CHECK_ANSWER(cuTensorMapReplaceAddress(given.maps, given.pointer()), CUDA_ERROR_INVALID_VALUE);
}

}  // namespace vgpu::test
