// Tensor maps: checks the arguments of cuTensorMapEncode… (cuda.h), and makes the map that the interpreter reads.
#include <algorithm>
#include <cstring>

#include "stub/emulator/driver/casts-unsafe.h"
#include "stub/emulator/driver/driver.h"
#include "stub/emulator/ptx/run/tensor-map.h"

namespace vgpu::emulator::api {
namespace {

constexpr uint64_t mostExtent = uint64_t{1} << 32, strideLimit = uint64_t{1} << 40, addressLimit = uint64_t{1} << 57;
constexpr uint32_t mostBox = 256, mostPixels = 1024, mostStep = 8;

bool isAligned(const void* pointer, uint64_t to) { return asNumber(pointer) % to == 0; }

// The arguments that all types of maps have.
struct Arguments {
  CUtensorMap* map;
  CUtensorMapDataType type;
  cuuint32_t rank;
  void* address;
  const cuuint64_t *extents, *strides;
  const cuuint32_t* steps;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

void requireDevice(Driver& driver) {
  // The formats of compute capability 9.0; those added in 10.0 are refused below.
  if (driver.device(0).attribute(CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED) == 0) refuse(CUDA_ERROR_NOT_SUPPORTED);
}

void requireFormats(const Arguments& given) {
  require(given.type >= 0 && given.type <= CU_TENSOR_MAP_DATA_TYPE_16U6_ALIGN16B);
  require(given.interleave >= 0 && given.interleave <= CU_TENSOR_MAP_INTERLEAVE_32B);
  require(given.swizzle >= 0 && given.swizzle <= CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B);
  require(given.promotion >= 0 && given.promotion <= CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  require(given.fill >= 0 && given.fill <= CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
  require(given.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE || given.rank >= 3);
  const bool known = given.type < std::size(tensorElements) && given.swizzle < static_cast<int>(std::size(swizzleSpans));
  if (!known) refuse(CUDA_ERROR_NOT_SUPPORTED, "tensor maps of packed elements, or with a swizzle of other than 16-byte units");
  require(given.fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE || tensorElements[given.type].isFloat);
}

// Strides may be in any order, as in drivers, although cuda.h describes increasing ones.
TensorMap encode(const Arguments& given) {
  require(given.map && isAligned(given.map, 64) && given.rank >= 1 && given.rank <= mostTensorDimensions);
  require(given.extents && given.steps && given.strides);  // required even for one dimension, which has no strides
  requireFormats(given);
  const uint32_t unit = std::max(interleavedUnits[given.interleave], 16u);
  require(isAligned(given.address, unit) && asNumber(given.address) < addressLimit);
  TensorMap map;
  map.mark = TensorMap::marked;
  map.type = static_cast<uint8_t>(given.type);
  map.rank = static_cast<uint8_t>(given.rank);
  map.swizzle = static_cast<uint8_t>(given.swizzle);
  map.interleave = static_cast<uint8_t>(given.interleave);
  map.promotion = static_cast<uint8_t>(given.promotion);
  map.fillsNan = given.fill != CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
  map.address = asNumber(given.address);
  for (uint32_t i = 0; i < given.rank; ++i) {
    require(given.extents[i] >= 1 && given.extents[i] <= mostExtent && given.steps[i] >= 1 && given.steps[i] <= mostStep);
    map.lastIndex[i] = static_cast<uint32_t>(given.extents[i] - 1);
    map.steps[i] = static_cast<uint8_t>(i == 0 && given.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE ? 1 : given.steps[i]);
    if (i == 0) continue;
    require(given.strides[i - 1] % unit == 0 && given.strides[i - 1] < strideLimit);
    map.strides[i - 1] = given.strides[i - 1];
  }
  return map;
}

// A row of the box consists of whole units of 16 bytes, and is no longer than the swizzle span. For an interleaved tensor the number of
// elements is the number of units, and must satisfy the same rule (docs/facts.md).
void setRow(TensorMap& map, cuuint32_t elements) {
  const uint32_t bytes = elements * tensorElements[map.type].bytes, span = swizzleSpans[map.swizzle];
  require(elements >= 1 && elements <= mostBox && bytes % 16 == 0 && (span == 0 || bytes <= span || map.interleave != 0));
  map.box[0] = static_cast<uint16_t>(elements);
}

void give(CUtensorMap* to, const TensorMap& map) { std::memcpy(to, &map, sizeof map); }

// Corners are offsets for a filter and its padding: the more dimensions, the fewer bits (cuda.h).
void setCorners(TensorMap& map, const int* lower, const int* upper) {
  require(lower && upper);
  const int limit = map.rank == 3 ? 32768 : map.rank == 4 ? 128 : 16;
  const uint32_t spatial = map.interleave == 0 ? 1 : 0;  // the first spatial dimension
  for (uint32_t i = 0; i + 2 < map.rank; ++i) {
    require(lower[i] >= -limit && lower[i] < limit && upper[i] >= -limit && upper[i] < limit);
    require(int64_t{map.lastIndex[i + spatial]} + 1 + upper[i] > lower[i]);  // the box must not be empty
    map.lower[i] = static_cast<int16_t>(lower[i]);
    map.upper[i] = static_cast<int16_t>(upper[i]);
  }
}

}  // namespace
}  // namespace vgpu::emulator::api

using namespace vgpu::emulator::api;
using vgpu::emulator::TensorMap;

CUresult CUDAAPI cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                        const cuuint64_t* extents, const cuuint64_t* strides, const cuuint32_t* box,
                                        const cuuint32_t* steps, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                        CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return enterDriver([&](Driver& driver) {
    requireDevice(driver);
    TensorMap made = encode({map, type, rank, address, extents, strides, steps, interleave, swizzle, promotion, fill});
    require(box != nullptr);
    setRow(made, box[0]);
    for (uint32_t i = 1; i < rank; ++i) {
      require(box[i] >= 1 && box[i] <= mostBox);
      made.box[i] = static_cast<uint16_t>(box[i]);
    }
    give(map, made);
  });
}

CUresult CUDAAPI cuTensorMapEncodeIm2col(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address,
                                         const cuuint64_t* extents, const cuuint64_t* strides, const int* lower, const int* upper,
                                         cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* steps,
                                         CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                         CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return enterDriver([&](Driver& driver) {
    requireDevice(driver);
    TensorMap made = encode({map, type, rank, address, extents, strides, steps, interleave, swizzle, promotion, fill});
    require(rank >= 3 && pixels >= 1 && pixels <= mostPixels);
    made.mode = TensorMap::Mode::imageToColumn;
    setRow(made, channels);
    setCorners(made, lower, upper);
    made.box[1] = static_cast<uint16_t>(pixels);
    give(map, made);
  });
}

CUresult CUDAAPI cuTensorMapReplaceAddress(CUtensorMap* map, void* address) {
  return enterDriver([&](Driver& driver) {
    requireDevice(driver);
    TensorMap changed;
    require(map && isAligned(map, 64) && address && isAligned(address, 16) && asNumber(address) < addressLimit);
    std::memcpy(static_cast<void*>(&changed), map, sizeof changed);
    require(changed.mark == TensorMap::marked);
    changed.address = asNumber(address);
    give(map, changed);
  });
}
