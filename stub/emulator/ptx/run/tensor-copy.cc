// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor: a box of a tensor, row after row of its innermost dimension.
#include <array>
#include <cstring>

#include "stub/emulator/ptx/run/bulk-lane.h"
#include "stub/emulator/ptx/run/hex.h"
#include "stub/emulator/ptx/run/tensor-map.h"

namespace vgpu::emulator {

namespace {

constexpr uint32_t mostRowBytes = 256 * 8;

class TensorCopy : public BulkLane {
 public:
  using BulkLane::BulkLane;

  bool run() {
    if (!readMap()) return false;
    for (uint32_t i = 0; i < map.rank; ++i) start[i] = operand<int32_t>(4 + i);
    shared = operand<uint64_t>(0);
    if (shared % 128) return refuse("a tensor copy whose address in shared memory is not a multiple of 128 bytes: " + hex(shared));
    if (form.reduction && !(reduction = findReduction(form.reduction, element.name)))
      return refuse("a reduction that the element type of this tensor does not support", Fault::Kind::illegalInstruction);
    if (!checkPlace()) return false;
    const bool done = map.mode == TensorMap::Mode::tiled ? copyBox() : copyPixels();
    return done && complete(operand<uint64_t>(2), operand<uint32_t>(3), rows * rowBytes);
  }

 private:
  using Coordinates = std::array<int64_t, mostTensorDimensions>;

  bool readMap() {
    const std::byte* const from = access(operand<uint64_t>(1), sizeof map, Access::read, 64);
    if (!from) return false;
    std::memcpy(&map, from, sizeof map);
    const bool pixels = map.mode == TensorMap::Mode::imageToColumn;
    const bool known = map.mark == TensorMap::marked && map.type < std::size(tensorElements) &&
                       map.swizzle < std::size(swizzleSpans) && map.interleave < std::size(interleavedUnits);
    if (!known || map.rank != form.rank || (form.offsets && !pixels))
      return refuse("there is no tensor map of " + std::to_string(form.rank) + " dimensions for this kind of copy at " +
                        hex(operand<uint64_t>(1)),
                    Fault::Kind::illegalInstruction);
    element = tensorElements[map.type];
    unit = interleavedUnits[map.interleave];
    if (isInterleaved() && map.rank < 3)
      return refuse("an interleaved tensor map of " + std::to_string(map.rank) + " dimensions", Fault::Kind::illegalInstruction);
    if (isInterleaved()) return rowBytes = pitch = unit, true;
    rowBytes = uint32_t{map.box[0]} * element.bytes;
    const uint32_t span = swizzleSpans[map.swizzle];
    pitch = std::max(rowBytes, span);
    if (rowBytes == 0 || rowBytes % 16 || rowBytes > mostRowBytes || (span && rowBytes > span))
      return refuse("a tensor map whose box has rows of " + std::to_string(rowBytes) + " bytes", Fault::Kind::illegalInstruction);
    return true;
  }

  // A box must begin at a multiple of 16 bytes of its row; a box that is stored must not begin before the tensor. It may extend beyond the
  // tensor's end.
  bool checkPlace() {
    if (!isInterleaved() && start[0] * element.bytes % 16)
      return refuse("a box of a tensor that begins at byte " + std::to_string(start[0] * element.bytes) + " of a row",
                    Fault::Kind::illegalInstruction);
    for (uint32_t i = 0; i < map.rank; ++i)
      if (start[i] < 0 && !form.toShared && map.mode == TensorMap::Mode::tiled)
        return refuse("a store of a tensor's box from " + std::to_string(start[i]) + " on in dimension " + std::to_string(i),
                      Fault::Kind::illegalInstruction);
    return true;
  }

  bool isInterleaved() const { return unit != 0; }
  // The first dimension along which elements are copied one by one: dimension 0 is copied as a row.
  uint32_t first() const { return isInterleaved() ? 0 : 1; }
  uint64_t stride(uint32_t dimension) const { return dimension == 0 ? unit : map.strides[dimension - 1]; }
  int64_t extent(uint32_t dimension) const { return int64_t{map.lastIndex[dimension]} + 1; }
  // With steps other than one, the number of elements on the steps within the box.
  uint32_t count(uint32_t dimension) const {
    if (isInterleaved() && dimension == map.rank - 2u) return 1;
    const uint32_t step = std::max<uint32_t>(map.steps[dimension], 1);
    return (map.box[dimension] + step - 1) / step;
  }

  bool copyBox() {
    std::array<uint32_t, mostTensorDimensions> at{};
    for (;;) {
      Coordinates place = start;
      for (uint32_t i = first(); i < map.rank; ++i) place[i] += int64_t{at[i]} * std::max<uint32_t>(map.steps[i], 1);
      if (!copyRow(place)) return false;
      uint32_t i = first();
      while (i < map.rank && ++at[i] == count(i)) at[i++] = 0;
      if (i >= map.rank) return true;
    }
  }

  // Pixels are taken in order from the box between the corners: along W, then H, D and the images. The offsets are a filter's.
  bool copyPixels() {
    const uint32_t spatial = map.rank - 2u;
    Coordinates pixel = start;
    for (uint32_t done = 0; done < map.box[1]; ++done) {
      Coordinates place = pixel;
      for (uint32_t i = 0; i < spatial && form.offsets; ++i) place[i + first()] += operand<uint32_t>(4 + map.rank + i) & 0xffff;
      if (!copyRow(place)) return false;
      uint32_t i = 0;
      for (; i < spatial; ++i) {
        const uint32_t along = i + first();
        pixel[along] += std::max<uint32_t>(map.steps[along], 1);
        if (pixel[along] < extent(along) + map.upper[i]) break;
        pixel[along] = map.lower[i];
      }
      if (i == spatial) ++pixel[map.rank - 1u];
    }
    return true;
  }

  bool copyRow(const Coordinates& place) {
    uint64_t address = map.address;
    bool inside = true;
    for (uint32_t i = first(); i < map.rank; ++i) {
      inside &= place[i] >= 0 && place[i] < extent(i);
      address += static_cast<uint64_t>(place[i]) * stride(i);
    }
    const uint64_t row = shared + uint64_t{rows++} * pitch;
    if (isInterleaved()) return move(row, address, 0, inside ? unit : 0);
    // Elements [begin, end) of the row lie in the tensor.
    const int64_t begin = inside ? std::clamp<int64_t>(-place[0], 0, map.box[0]) : map.box[0],
                  end = inside ? std::clamp<int64_t>(extent(0) - place[0], begin, map.box[0]) : map.box[0];
    address += static_cast<uint64_t>((place[0] + begin) * element.bytes);
    const auto bytes = static_cast<uint32_t>((end - begin) * element.bytes);
    return move(row, address, static_cast<uint32_t>(begin * element.bytes), bytes);
  }

  bool move(uint64_t row, uint64_t address, uint32_t skipped, uint32_t bytes) {
    return form.toShared ? load(row, address, skipped, bytes) : store(row, address, skipped, bytes);
  }

  bool load(uint64_t row, uint64_t address, uint32_t skipped, uint32_t bytes) {
    alignas(16) std::byte values[mostRowBytes];
    if (bytes < rowBytes) fill(values);
    if (bytes) {
      const std::byte* const from = access(address, bytes, Access::read);
      if (!from) return false;
      std::memcpy(values + skipped, from, bytes);
      convert(values + skipped, bytes);
    }
    return forBlocks(row, operand<uint32_t>(3), [&](uint64_t target) {
      return forUnits(target, Access::write, [&](std::byte* unit, uint32_t at) { std::memcpy(unit, values + at, 16); });
    });
  }

  bool store(uint64_t row, uint64_t address, uint32_t skipped, uint32_t bytes) {
    if (bytes == 0) return true;
    alignas(16) std::byte values[mostRowBytes];
    if (!forUnits(row, Access::read, [&](const std::byte* unit, uint32_t at) { std::memcpy(values + at, unit, 16); }))
      return false;
    std::byte* const to = access(address, bytes, Access::write);
    if (!to) return false;
    if (!reduction) return std::memcpy(to, values + skipped, bytes), true;
    for (uint32_t at = 0; at < bytes; at += reduction->bytes) reduction->reduce(to + at, values + skipped + at);
    return true;
  }

  // Calls each(place, offset) for the 16-byte units of a row in shared memory.
  template <class F>
  bool forUnits(uint64_t row, Access kind, F each) {
    for (uint32_t at = 0; at < rowBytes; at += 16) {
      std::byte* const unit = access(swizzled(row + at, swizzleSpans[map.swizzle]), 16, kind, 16);
      if (!unit) return false;
      each(unit, at);
    }
    return true;
  }

  // Elements outside the tensor are zero, or a NaN.
  void fill(std::byte* values) const {
    if (!map.fillsNan) return void(std::memset(values, 0, rowBytes));
    constexpr uint64_t nan = 0x7ff77ff77ff77ff7;  // a NaN in every type; fma.oob recognizes the halves
    for (uint32_t at = 0; at < rowBytes; at += 8) std::memcpy(values + at, &nan, 8);
  }

  // Types whose values are changed by the copy: subnormals become zeros, tf32 is rounded to 10 bits, to nearest even.
  void convert(std::byte* values, uint32_t bytes) const {
    const bool rounds = map.type == tensorTf32 || map.type == tensorTf32Flushed;
    if (!rounds && !element.flushes) return;
    for (uint32_t at = 0; at < bytes; at += 4) {
      uint32_t value;
      std::memcpy(&value, values + at, 4);
      if (element.flushes && (value & 0x7f800000) == 0) value &= 0x80000000;
      if (rounds && (value & 0x7f800000) != 0x7f800000) value = (value + 0xfff + (value >> 13 & 1)) & 0xffffe000;
      std::memcpy(values + at, &value, 4);
    }
  }

  TensorMap map;
  TensorElement element{};
  const AtomicRow* reduction = nullptr;
  Coordinates start{};
  uint64_t shared = 0;
  uint32_t rowBytes = 0, pitch = 0, rows = 0;
  uint32_t unit = 0;  // bytes, for an interleaved tensor
};

}  // namespace

const Inst* copyTensor(Warp& warp, const Inst* inst) {
  for (uint32_t left = warp.active; left; left &= left - 1)
    if (!TensorCopy(warp, inst, __builtin_ctz(left)).run()) return nullptr;
  return inst + 1;
}

namespace {

// PTX has its own numbers for element types (PTX ISA, tensormap.replace, "elemtype"); the map has the driver's.
constexpr uint8_t elementNumbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 10, 8, 9, 11, 12};

bool replace(TensorMap& map, TensorField field, uint32_t which, uint64_t value) {
  switch (field) {
    case TensorField::address:
      return map.address = value, value % 16 == 0;
    case TensorField::rank:
      return map.rank = static_cast<uint8_t>(value + 1), value < mostTensorDimensions;
    case TensorField::box:
      return map.box[which] = static_cast<uint16_t>(value), value >= 1 && value <= 256;
    case TensorField::extent:
      return map.lastIndex[which] = static_cast<uint32_t>(value - 1), (value & 0xffffffff) != 0;
    case TensorField::stride:
      return map.strides[which] = value, value % 16 == 0 && which < mostTensorDimensions - 1;
    case TensorField::step:
      return map.steps[which] = static_cast<uint8_t>(value), value >= 1 && value <= 8;
    case TensorField::type:
      return value < std::size(elementNumbers) && (map.type = elementNumbers[value], true);
    case TensorField::interleave:
      return map.interleave = static_cast<uint8_t>(value), value < std::size(interleavedUnits);
    case TensorField::atomicity:
      return value == 0;
    case TensorField::swizzle:
      return map.swizzle = static_cast<uint8_t>(value), value < std::size(swizzleSpans);
    case TensorField::fill:
      return map.fillsNan = value != 0, value <= 1;
  }
  return false;
}

}  // namespace

const Inst* replaceTensorField(Warp& warp, const Inst* inst) {
  const uint64_t* const addresses = warp.lanes<uint64_t>(inst->op[0]);
  const uint64_t* const values = warp.lanes<uint64_t>(inst->op[1]);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    std::byte* const place = warp.access(inst, lane, addresses[lane], sizeof(TensorMap), 64, Access::update);
    if (!place) return nullptr;
    TensorMap map;
    std::memcpy(&map, place, sizeof map);
    if (map.mark != TensorMap::marked || !replace(map, static_cast<TensorField>(inst->imm & 0xff), inst->imm >> 8, values[lane]))
      return warp.fault(Fault::Kind::illegalInstruction, inst, lane,
                        "a tensor map's field cannot be " + hex(values[lane]) + ", or it is not a tensor map");
    std::memcpy(place, &map, sizeof map);
  }
  return inst + 1;
}

}  // namespace vgpu::emulator
