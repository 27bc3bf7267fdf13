// A field of type `place`: one end of a copy, in one number whose upper bits say what it is.
//
//   0                     part of the call: the source is the data in the frame, the destination the slot on which the call waits
//   below 2^52            an address: memory of a device, or the program's
//   an array's handle     63..60 are 0, 59..52 its kind (handle.h)
//   2^60 + n              staging slab n
//
// A reader of a frame must check what the place names: a program may write any number.
#pragma once

#include <cstdint>

#include "vgpu/api/handle.h"

namespace vgpu::api {

enum class PlaceType : uint8_t { CALL, ADDRESS, ARRAY, SLAB, NONE };

class Place {
 public:
  constexpr Place() = default;  // part of the call
  constexpr explicit Place(uint64_t number) : bits(number) {}

  // An address that no memory can have yields an invalid place.
  static constexpr Place address(uint64_t address) { return Place(address < firstHandle ? address : nowhere); }
  // A handle of another kind yields the handle of no array.
  static constexpr Place array(uint64_t handle) {
    return Place(handle == 0 || handleKind(handle) == arrayKind ? handle : makeHandle(Kind::ARRAY, 0xf, ~0u, ~0u >> 8));
  }
  static constexpr Place slab(uint32_t slab) { return Place(firstSlab + slab); }

  constexpr PlaceType type() const {
    if (bits < firstHandle) return bits == 0 ? PlaceType::CALL : PlaceType::ADDRESS;
    if (isArray()) return PlaceType::ARRAY;
    return bits >= firstSlab && bits < 2 * firstSlab ? PlaceType::SLAB : PlaceType::NONE;
  }
  constexpr bool isArray() const { return handleKind(bits) == arrayKind; }
  // The number in a frame.
  constexpr uint64_t number() const { return bits; }
  // The address, the array's handle, or the slab's number.
  constexpr uint64_t value() const { return type() == PlaceType::SLAB ? bits - firstSlab : bits; }
  constexpr bool operator==(const Place&) const = default;

 private:
  static constexpr uint64_t firstHandle = uint64_t{1} << 52, firstSlab = uint64_t{1} << 60, nowhere = UINT64_MAX;
  static constexpr unsigned arrayKind = static_cast<unsigned>(Kind::ARRAY);
  static_assert(kindCount <= firstSlab / firstHandle);

  uint64_t bits = 0;
};

}  // namespace vgpu::api
