// Tensor maps: valid and invalid arguments of each kind, and changes of a map. The map's bytes are the driver's own.
#include "conformance.h"

namespace {

constexpr CUtensorMapDataType words = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;

// A valid tensor of 4-byte elements and a box in it; each case below changes one thing.
struct Tensor {
  void* memory = nullptr;
  CUtensorMapDataType type = words;
  cuuint32_t rank = 2;
  cuuint64_t extents[5] = {64, 32, 8, 4, 2}, strides[5] = {256, 8192, 65536, 262144, 1 << 20};
  cuuint32_t box[5] = {16, 8, 2, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_NONE;
  CUtensorMapFloatOOBfill outside = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;

  Tensor() { CHECK(cudaMalloc(&memory, 4 << 20)); }
};

alignas(64) CUtensorMap map, other;

CUresult tiled(const Tensor& of, CUtensorMap* to = &map) {
  return findInDriver<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled")(
      to, of.type, of.rank, of.memory, of.extents, of.strides, of.box, of.steps, of.interleave, of.swizzle, of.promotion, of.outside);
}

template <typename Change>
void describe(const char* what, Change change) {
  static const Tensor good;
  Tensor tensor = good;
  change(tensor);
  say(what, tiled(tensor));
}
#define DESCRIBE(change) describe(#change, [](Tensor& t) { change; })

}  // namespace

SECTION(shapes) {
  DESCRIBE(t.rank = 2);
  DESCRIBE(t.rank = 0);
  DESCRIBE(t.rank = 1);
  DESCRIBE(t.rank = 5);
  DESCRIBE(t.rank = 6);
  DESCRIBE(t.extents[0] = 0);
  DESCRIBE(t.extents[1] = 1);
  DESCRIBE(t.extents[1] = uint64_t{1} << 32);
  DESCRIBE(t.extents[1] = (uint64_t{1} << 32) + 1);
  DESCRIBE(t.strides[0] = 264);
  DESCRIBE(t.strides[0] = 0);
  DESCRIBE(t.strides[0] = 16);
  DESCRIBE(t.strides[0] = uint64_t{1} << 40);
  DESCRIBE(t.strides[0] = (uint64_t{1} << 40) - 16);
  DESCRIBE(t.memory = static_cast<char*>(t.memory) + 16);
  DESCRIBE(t.memory = static_cast<char*>(t.memory) + 8);
  DESCRIBE(t.memory = nullptr);
}

SECTION(boxes) {
  DESCRIBE(t.box[0] = 0);
  DESCRIBE(t.box[0] = 256);
  DESCRIBE(t.box[0] = 257);
  DESCRIBE(t.box[0] = 3);
  DESCRIBE(t.box[0] = 128);
  DESCRIBE(t.box[1] = 256);
  DESCRIBE(t.box[1] = 257);
  DESCRIBE(t.steps[0] = 2);
  DESCRIBE(t.steps[1] = 8);
  DESCRIBE(t.steps[1] = 9);
  DESCRIBE(t.steps[1] = 0);
}

SECTION(kinds) {
  DESCRIBE(t.type = CU_TENSOR_MAP_DATA_TYPE_UINT8);
  DESCRIBE(t.type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  DESCRIBE(t.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT64);
  DESCRIBE(t.type = static_cast<CUtensorMapDataType>(99));
  DESCRIBE(t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B);
  DESCRIBE(t.swizzle = CU_TENSOR_MAP_SWIZZLE_64B);
  DESCRIBE(t.swizzle = CU_TENSOR_MAP_SWIZZLE_128B);
  DESCRIBE(t.swizzle = static_cast<CUtensorMapSwizzle>(99));
  DESCRIBE(t.interleave = CU_TENSOR_MAP_INTERLEAVE_16B);
  DESCRIBE(t.interleave = CU_TENSOR_MAP_INTERLEAVE_16B; t.rank = 3; t.box[0] = 4);
  DESCRIBE(t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; t.rank = 3; t.box[0] = 8; t.swizzle = CU_TENSOR_MAP_SWIZZLE_32B);
  DESCRIBE(t.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; t.rank = 3; t.box[0] = 8);
  DESCRIBE(t.interleave = static_cast<CUtensorMapInterleave>(99));
  DESCRIBE(t.promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  DESCRIBE(t.promotion = static_cast<CUtensorMapL2promotion>(99));
  DESCRIBE(t.outside = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  DESCRIBE(t.outside = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA; t.type = CU_TENSOR_MAP_DATA_TYPE_INT32);
  DESCRIBE(t.outside = static_cast<CUtensorMapFloatOOBfill>(99));
}

SECTION(places) {
  const Tensor tensor;
  say("no map", tiled(tensor, nullptr));
  say("a map", tiled(tensor));
  SAYCU(cuTensorMapEncodeTiled, &map, words, 2, tensor.memory, nullptr, tensor.strides, tensor.box, tensor.steps, tensor.interleave,
        tensor.swizzle, tensor.promotion, tensor.outside);
  SAYCU(cuTensorMapEncodeTiled, &map, words, 2, tensor.memory, tensor.extents, nullptr, tensor.box, tensor.steps, tensor.interleave,
        tensor.swizzle, tensor.promotion, tensor.outside);
  SAYCU(cuTensorMapEncodeTiled, &map, words, 2, tensor.memory, tensor.extents, tensor.strides, nullptr, tensor.steps, tensor.interleave,
        tensor.swizzle, tensor.promotion, tensor.outside);
  SAYCU(cuTensorMapEncodeTiled, &map, words, 2, tensor.memory, tensor.extents, tensor.strides, tensor.box, nullptr, tensor.interleave,
        tensor.swizzle, tensor.promotion, tensor.outside);
}

SECTION(otherMemory) {
  Tensor tensor, moved;
  say("one", tiled(tensor));
  say("another", tiled(moved, &other));
  VALUE(std::memcmp(&map, &other, sizeof map) == 0);
  SAYCU(cuTensorMapReplaceAddress, &map, moved.memory);
  VALUE(std::memcmp(&map, &other, sizeof map) == 0);
  SAYCU(cuTensorMapReplaceAddress, &map, static_cast<char*>(moved.memory) + 8);
}

SECTION(pixels) {
  const Tensor tensor;
  const int lower[3] = {-1, -1, 0}, upper[3] = {0, 0, 0}, farUpper[3] = {200, 0, 0};
  const cuuint32_t steps[4] = {1, 1, 1, 1};
  auto encode = [&](const char* what, cuuint32_t rank, const int* from, const int* to, cuuint32_t channels, cuuint32_t count) {
    say(what, findInDriver<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col")(
                  &map, words, rank, tensor.memory, tensor.extents, tensor.strides, from, to, channels, count, steps, tensor.interleave,
                  tensor.swizzle, tensor.promotion, tensor.outside));
  };
  encode("four dimensions", 4, lower, upper, 16, 32);
  encode("three dimensions", 3, lower, upper, 16, 32);
  encode("two dimensions", 2, lower, upper, 16, 32);
  encode("too many pixels", 4, lower, upper, 16, 1025);
  encode("many pixels", 4, lower, upper, 16, 1024);
  encode("no pixels", 4, lower, upper, 16, 0);
  encode("too many channels", 4, lower, upper, 257, 32);
  encode("no channels", 4, lower, upper, 0, 32);
  encode("a far corner", 4, lower, farUpper, 16, 32);
}
