// Texture and surface objects for kernels: elements in device memory, and how they are read.
//
// The device makes a view when the program makes the object; it never changes. Kernels find it by the instruction's 64-bit handle. Views of
// references are made at each launch, and found by the address of the reference's variable.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "stub/emulator/ptx/run/block-decode.h"
#include "stub/emulator/ptx/run/tile-layout.h"

namespace vgpu::emulator {

struct ElementFormat {
  enum class Kind : uint8_t { unsignedInteger, signedInteger, floating };
  Kind kind = Kind::unsignedInteger;
  uint8_t channelBytes = 0;  // 1, 2 or 4
  uint8_t channels = 0;      // 1, 2 or 4
  Coding coding = Coding::plain;
  // Bytes of a unit: an element, or a block of side × side elements.
  uint32_t bytes() const {
    if (isBlock(coding)) return blockBytes(coding);
    return coding == Coding::tenBits ? 4 : uint32_t{channelBytes} * channels;
  }
  uint32_t side() const { return isBlock(coding) ? 4 : 1; }
};

// One level of a mipmapped array, or the whole of any other image. Pitches are in bytes; the row pitch is that of units.
struct ElementGrid {
  uint64_t address = 0;                        // device address of element (0, 0, 0)
  uint32_t width = 1, height = 1, slices = 1;  // in elements; slices of a volume, layers, or faces
  uint64_t pitch = 0, slicePitch = 0;
  std::shared_ptr<const TileLayout> tiles;  // if present, used instead of address and pitches,
  uint32_t firstSlice = 0;                  // with the first slice, for a view of some layers
  uint64_t bytes(uint32_t element) const {
    return (slices - 1) * slicePitch + (height - 1) * pitch + uint64_t{width} * element;
  }
};

enum class Addressing : uint8_t { wrap, clamp, mirror, border };

struct ImageView {
  ElementFormat format;
  // The largest first. If its width is 0, nothing is bound: all reads return zero, and writes are ignored.
  std::vector<ElementGrid> levels;
  bool surface = false;
  bool line = false;  // linear memory: fetched by index, zero past its end
  // For textures:
  std::array<Addressing, 3> addressing{};
  std::array<float, 4> border{};
  bool linear = false;      // linear filtering; otherwise the nearest element
  bool normalized = false;  // coordinates
  bool fractions = false;   // integers are read as fractions of their largest value
  bool srgb = false;
  bool linearMipmap = false;
  float levelBias = 0, leastLevel = 0, mostLevel = 0;
};

// The objects of a device. Called by many threads at once; a view stays valid until the kernel ends.
class ImageViews {
 public:
  virtual ~ImageViews() = default;
  virtual const ImageView* find(uint64_t handle) const = 0;  // nullptr if no object has this handle
  // Whether the view belongs to a reference, not to an object.
  virtual bool isReference(uint64_t handle) const = 0;
};

}  // namespace vgpu::emulator
