// A field of type `place`: one end of a copy, in one number that says by its upper bits what it is.
//
//   0                     of the call itself: a source is the data in the frame, a destination the slot on which the call waits
//   below 2^52            an address: memory of a device, or the program's
//   an array's handle     63..60 are 0, 59..52 its kind (handle.h)
//   2^60 + n              staging slab n
//
// Whoever reads one of a frame checks what it names: a program may write any number.
#pragma once

#include <cstdint>

#include "vgpu/api/handle.h"

namespace vgpu::api {

enum class PlaceType : uint8_t { CALL, ADDRESS, ARRAY, SLAB, NONE };

class Place {
 public:
  constexpr Place() = default;  // of the call
  constexpr explicit Place(uint64_t number) : bits(number) {}

  // An address that no memory can have is no place.
  static constexpr Place address(uint64_t address) { return Place(address < firstHandle ? address : nowhere); }
  // The handle of another kind is that of no array.
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
  // As a frame has it.
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
