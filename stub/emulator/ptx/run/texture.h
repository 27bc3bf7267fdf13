// Texture and surface instructions: the data that their decoders pass to their handlers.
#pragma once

#include "stub/emulator/ptx/run/handlers.h"

namespace vgpu::emulator {

struct Geometry {
  uint8_t axes = 0;  // number of coordinates; 0: not given
  bool layered = false, cube = false;
};

// Inst::imm of fetchTexture. Operands: up to 4 channels (then perhaps the predicate `resident`); then the handle, the layer if there are
// layers, the coordinates, the operands that determine the level, and offsets in elements.
struct TextureForm {
  enum class Level : uint8_t { base, given, byGradients, gather, baseOffset, givenOffset, byGradientsOffset, gatherOffset };
  enum class Result : uint8_t { word, half, half2 };
  Geometry geometry;
  Level level = Level::base;
  Result result = Result::word;
  bool whole = false;     // coordinates are s32
  uint8_t component = 0;  // of gather
  bool resident = false;  // the last output is a predicate

  bool hasOffset() const { return level >= Level::baseOffset; }
  Level plainLevel() const { return static_cast<Level>(static_cast<uint8_t>(level) & 3); }
};
static_assert(sizeof(TextureForm) == 8);
const Inst* fetchTexture(Warp&, const Inst*);

// Inst::imm of loadSurface, storeSurface and reduceSurface. Operands: the elements (loads); then the handle, the layer, the
// coordinates, x in bytes; then the elements (stores, reductions).
struct SurfaceForm {
  enum class Outside : uint8_t { trap, clamp, zero };
  Geometry geometry;
  Outside outside = Outside::trap;
  uint8_t elements = 1, elementBytes = 0;
  uint8_t reduction = 0, type = 0;  // as in BulkForm (bulk-copy.h)
};
static_assert(sizeof(SurfaceForm) == 8);
const Inst* loadSurface(Warp&, const Inst*);
const Inst* storeSurface(Warp&, const Inst*);
const Inst* reduceSurface(Warp&, const Inst*);

// txq and suq: op[0] result, op[1] handle, op[2] level. imm: ImageQuery, and bit 8 for a surface.
enum class ImageQuery : uint8_t { width, height, depth, dataType, order, normalized, layers, levels, samples, layout };
const Inst* queryImage(Warp&, const Inst*);

// istypep: op[0] a predicate, op[1] a possible address of a reference. imm: whether to look for a surface's or a texture's.
const Inst* isReference(Warp&, const Inst*);

}  // namespace vgpu::emulator
