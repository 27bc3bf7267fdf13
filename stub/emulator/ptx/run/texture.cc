#include "stub/emulator/ptx/run/texture.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stub/emulator/ptx/lanes/half-values.h"
#include "stub/emulator/ptx/run/block.h"
#include "stub/emulator/ptx/run/bulk-copy.h"
#include "stub/emulator/ptx/run/hex.h"
#include "stub/emulator/ptx/run/sampler.h"

namespace vgpu::emulator {
namespace {

const WideOperands& operandsOf(const Inst* inst) { return *static_cast<const WideOperands*>(inst->aux); }

// The object of a lane's handle; nullptr, after a fault, if there is none of that kind.
const ImageView* imageOf(Warp& warp, const Inst* inst, int lane, uint64_t handle, bool surface) {
  const ImageViews* const images = warp.block().launch().images;
  const ImageView* const image = images ? images->find(handle) : nullptr;
  if (image && image->surface == surface) return image;
  warp.fault(Fault::Kind::illegalAddress, inst, lane,
             std::string("no ") + (surface ? "surface" : "texture") + " object has the handle " + hex(handle));
  return nullptr;
}

class WarpReader : public ElementReader {
 public:
  explicit WarpReader(Warp& warp) : warp(warp) {}
  const std::byte* at(uint64_t address, uint32_t bytes) override {
    if (address - span.base < span.bytes && bytes <= span.bytes - (address - span.base))
      return span.host + (address - span.base);
    const Warp::Span* const found = warp.findSpan(address, bytes, false);
    if (!found) return nullptr;
    span = *found;
    return span.host + (address - span.base);
  }

 private:
  Warp& warp;
  Warp::Span span;
};

// A lane's operands, read one after the other.
struct LaneInputs {
  Warp& warp;
  const std::vector<int32_t>& slots;
  int lane;
  size_t next = 0;

  uint64_t wide() { return warp.lanes<uint64_t>(slots[next++])[lane]; }
  uint32_t word() { return warp.lanes<uint32_t>(slots[next++])[lane]; }
  float number() { return std::bit_cast<float>(word()); }
  std::array<float, 3> numbers(int count) {
    std::array<float, 3> values{};
    for (int i = 0; i < count; ++i) values[i] = number();
    return values;
  }
};

Place placeOf(TextureForm form, LaneInputs& in) {
  Place place{
      .axes = form.geometry.axes, .layered = form.geometry.layered, .cube = form.geometry.cube, .whole = form.whole};
  if (place.layered) place.layer = in.word();
  for (int axis = 0; axis < place.axes; ++axis)
    place.at[axis] = form.whole ? static_cast<int32_t>(in.word()) : static_cast<double>(in.number());
  return place;
}

// An offset has four bits, including a sign.
int offsetOf(uint32_t word) { return static_cast<int32_t>(word << 28) >> 28; }

Channels fetch(TextureForm form, const ImageView& image, ElementReader& reader, LaneInputs& in) {
  Place place = placeOf(form, in);
  const TextureForm::Level how = form.plainLevel();
  std::optional<float> level;
  if (how == TextureForm::Level::given) {
    level = form.whole ? static_cast<float>(static_cast<int32_t>(in.word())) : in.number();
  } else if (how == TextureForm::Level::byGradients) {
    const auto dx = in.numbers(place.axes), dy = in.numbers(place.axes);
    level = levelOf(image, place, dx, dy);
  }
  for (int axis = 0; axis < place.axes && form.hasOffset(); ++axis) place.offset[axis] = offsetOf(in.word());
  return how == TextureForm::Level::gather ? gather(image, reader, place, form.component) : sample(image, reader, place, level);
}

uint32_t halfOf(uint32_t bits) { return halfBits(std::bit_cast<float>(bits)); }

void put(Warp& warp, TextureForm form, const std::vector<int32_t>& outs, int lane, const Channels& channels, bool resident) {
  const size_t count = outs.size() - form.resident;
  for (size_t i = 0; i < count; ++i) {
    uint32_t& out = warp.lanes<uint32_t>(outs[i])[lane];
    switch (form.result) {
      case TextureForm::Result::word:
        out = channels[i];
        break;
      case TextureForm::Result::half:
        out = halfOf(channels[i]);
        break;
      case TextureForm::Result::half2:
        out = halfOf(channels[2 * i]) | halfOf(channels[2 * i + 1]) << 16;
        break;
    }
  }
  if (form.resident) warp.lanes<uint32_t>(outs[count])[lane] = resident ? ~0u : 0;
}

// ---- surfaces

struct SurfacePlace {
  int64_t x = 0;  // bytes
  int64_t y = 0, slice = 0;
};

SurfacePlace surfacePlaceOf(SurfaceForm form, LaneInputs& in) {
  const auto next = [&] { return static_cast<int64_t>(static_cast<int32_t>(in.word())); };
  SurfacePlace place;
  if (form.geometry.layered) place.slice = next();
  place.x = next();
  if (form.geometry.axes > 1) place.y = next();
  if (form.geometry.axes > 2) place.slice = next();
  return place;
}

bool isInside(const SurfacePlace& place, const ElementGrid& grid, int64_t rowBytes, int64_t bytes) {
  return place.x >= 0 && place.x <= rowBytes - bytes && place.y >= 0 && place.y < grid.height && place.slice >= 0 &&
         place.slice < grid.slices;
}

enum class Found { here, outside, failed };

// The place of a lane's surface access.
Found locate(Warp& warp, const Inst* inst, SurfaceForm form, LaneInputs& in, bool write, std::byte*& host) {
  const ImageView* const image = imageOf(warp, inst, in.lane, in.wide(), true);
  if (!image) return Found::failed;
  SurfacePlace place = surfacePlaceOf(form, in);
  const ElementGrid& grid = image->levels[0];
  if (grid.width == 0) return Found::outside;
  const int64_t bytes = form.elements * form.elementBytes, rowBytes = int64_t{grid.width} * image->format.bytes();
  const auto name = [&] {
    return std::string(write ? "write" : "read") + " of " + std::to_string(bytes) + " bytes at byte " +
           std::to_string(place.x) + ", row " + std::to_string(place.y) + ", slice " + std::to_string(place.slice) +
           " of a surface of " + std::to_string(rowBytes) + " bytes, " + std::to_string(grid.height) + " rows and " +
           std::to_string(grid.slices) + " slices";
  };
  if (place.x % bytes != 0) {
    warp.fault(Fault::Kind::misalignedAddress, inst, in.lane, "a misaligned " + name());
    return Found::failed;
  }
  if (!isInside(place, grid, rowBytes, bytes)) {
    if (form.outside == SurfaceForm::Outside::zero) return Found::outside;
    if (form.outside == SurfaceForm::Outside::trap || rowBytes < bytes) {
      warp.fault(Fault::Kind::illegalAddress, inst, in.lane, "an out-of-bounds " + name());
      return Found::failed;
    }
    place.x = std::clamp<int64_t>(place.x, 0, (rowBytes - bytes) / bytes * bytes);
    place.y = std::clamp<int64_t>(place.y, 0, grid.height - 1);
    place.slice = std::clamp<int64_t>(place.slice, 0, grid.slices - 1);
  }
  if (grid.tiles) {
    host = grid.tiles->runAt(static_cast<uint64_t>(place.x) / image->format.bytes(), static_cast<uint64_t>(place.y),
                             static_cast<uint64_t>(place.slice)).at;
    if (host) {
      host += static_cast<uint64_t>(place.x) % image->format.bytes();
      return Found::here;
    }
    if (grid.tiles->readsZeros) return Found::outside;  // writes there are ignored
    warp.fault(Fault::Kind::illegalAddress, inst, in.lane, "a " + name() + ", which has no memory");
    return Found::failed;
  }
  const uint64_t address = grid.address + static_cast<uint64_t>(place.slice) * grid.slicePitch +
                           static_cast<uint64_t>(place.y) * grid.pitch + static_cast<uint64_t>(place.x);
  host = warp.locate(inst, in.lane, address, static_cast<uint32_t>(bytes), 1, write);
  return host ? Found::here : Found::failed;
}

}  // namespace

const Inst* fetchTexture(Warp& warp, const Inst* inst) {
  const auto form = std::bit_cast<TextureForm>(inst->imm);
  const WideOperands& operands = operandsOf(inst);
  WarpReader reader(warp);
  const ImageView* image = nullptr;
  uint64_t handle = 0;
  std::array<Channels, laneCount> results;
  uint32_t resident = 0;
  for (uint32_t left = warp.active; left; left &= left - 1) {
    LaneInputs in{warp, operands.ins, __builtin_ctz(left)};
    const uint64_t wanted = in.wide();
    if (!image || wanted != handle) image = imageOf(warp, inst, in.lane, handle = wanted, false);
    if (!image) return nullptr;
    reader.resident = true;
    results[in.lane] = fetch(form, *image, reader, in);
    resident |= uint32_t{reader.resident} << in.lane;
    // Reports the fault.
    if (reader.failed && !warp.locate(inst, in.lane, *reader.failed, image->format.bytes(), 1, false)) return nullptr;
  }
  for (uint32_t left = warp.active; left; left &= left - 1)
    put(warp, form, operands.outs, __builtin_ctz(left), results[__builtin_ctz(left)], resident >> __builtin_ctz(left) & 1);
  return inst + 1;
}

const Inst* loadSurface(Warp& warp, const Inst* inst) {
  const auto form = std::bit_cast<SurfaceForm>(inst->imm);
  const WideOperands& operands = operandsOf(inst);
  std::array<std::array<std::byte, 16>, laneCount> values{};
  for (uint32_t left = warp.active; left; left &= left - 1) {
    LaneInputs in{warp, operands.ins, __builtin_ctz(left)};
    std::byte* host = nullptr;
    const Found found = locate(warp, inst, form, in, false, host);
    if (found == Found::failed) return nullptr;
    if (found == Found::here) std::memcpy(values[in.lane].data(), host, size_t{form.elements} * form.elementBytes);
  }
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    for (size_t i = 0; i < form.elements; ++i) {
      uint64_t value = 0;
      std::memcpy(&value, &values[lane][i * form.elementBytes], form.elementBytes);
      if (form.elementBytes == 8)
        warp.lanes<uint64_t>(operands.outs[i])[lane] = value;
      else
        warp.lanes<uint32_t>(operands.outs[i])[lane] = static_cast<uint32_t>(value);
    }
  }
  return inst + 1;
}

namespace {

// Calls each(inputs, place) for the lanes whose position lies inside the surface; the inputs after the coordinates are still unread.
template <class F>
const Inst* atPlaces(Warp& warp, const Inst* inst, SurfaceForm form, F each) {
  for (uint32_t left = warp.active; left; left &= left - 1) {
    LaneInputs in{warp, operandsOf(inst).ins, __builtin_ctz(left)};
    std::byte* host = nullptr;
    const Found found = locate(warp, inst, form, in, true, host);
    if (found == Found::failed) return nullptr;
    if (found == Found::here) each(in, host);
  }
  return inst + 1;
}

}  // namespace

const Inst* storeSurface(Warp& warp, const Inst* inst) {
  const auto form = std::bit_cast<SurfaceForm>(inst->imm);
  return atPlaces(warp, inst, form, [form](LaneInputs& in, std::byte* host) {
    for (size_t i = 0; i < form.elements; ++i) {
      const uint64_t value = form.elementBytes == 8 ? in.wide() : in.word();
      std::memcpy(host + i * form.elementBytes, &value, form.elementBytes);
    }
  });
}

const Inst* reduceSurface(Warp& warp, const Inst* inst) {
  const auto form = std::bit_cast<SurfaceForm>(inst->imm);
  const AtomicRow* const row = findReduction(form.reduction, bulkTypes[form.type]);
  return atPlaces(warp, inst, form, [form, row](LaneInputs& in, std::byte* host) {
    const uint64_t value = form.elementBytes == 8 ? in.wide() : in.word();
    row->reduce(host, static_cast<const std::byte*>(static_cast<const void*>(&value)));
  });
}

namespace {

// The numbers come from OpenCL (PTX ISA, "Channel Data Type and Channel Order Fields").
uint32_t dataTypeOf(const ImageView& image) {
  const uint32_t size = image.format.channelBytes == 1 ? 0 : image.format.channelBytes == 2 ? 1 : 2;
  switch (image.format.kind) {
    case ElementFormat::Kind::floating:
      return size == 1 ? 0x10dd : 0x10de;
    case ElementFormat::Kind::signedInteger:
      return (image.fractions ? 0x10d0 : 0x10d7) + size;
    case ElementFormat::Kind::unsignedInteger:
      return (image.fractions ? 0x10d2 : 0x10da) + size;
  }
  return 0;
}
uint32_t orderOf(const ImageView& image) {
  return image.format.channels == 1 ? 0x10b0 : image.format.channels == 2 ? 0x10b2 : 0x10b5;
}

uint32_t answerOf(const ImageView& image, ImageQuery query, uint32_t level) {
  const ElementGrid none{.width = 0, .height = 0, .slices = 0};
  const ElementGrid& grid = level < image.levels.size() ? image.levels[level] : none;
  switch (query) {
    case ImageQuery::width:
      return grid.width;
    case ImageQuery::height:
      return grid.height;
    case ImageQuery::depth:
    case ImageQuery::layers:
      return grid.slices;
    case ImageQuery::dataType:
      return dataTypeOf(image);
    case ImageQuery::order:
      return orderOf(image);
    case ImageQuery::normalized:
      return image.normalized;
    case ImageQuery::levels:
      return static_cast<uint32_t>(image.levels.size());
    case ImageQuery::samples:
    case ImageQuery::layout:
      return 1;
  }
  return 0;
}

}  // namespace

const Inst* queryImage(Warp& warp, const Inst* inst) {
  const uint64_t* const handles = warp.lanes<uint64_t>(inst->op[1]);
  const uint32_t* const levels = warp.lanes<uint32_t>(inst->op[2]);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const ImageView* const image = imageOf(warp, inst, lane, handles[lane], (inst->imm >> 8) != 0);
    if (!image) return nullptr;
    warp.lanes<uint32_t>(inst->op[0])[lane] = answerOf(*image, static_cast<ImageQuery>(inst->imm & 0xff), levels[lane]);
  }
  return inst + 1;
}

const Inst* isReference(Warp& warp, const Inst* inst) {
  const ImageViews* const images = warp.block().launch().images;
  const uint64_t* const addresses = warp.lanes<uint64_t>(inst->op[1]);
  const bool surface = inst->imm != 0;
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const bool isOne = images && images->isReference(addresses[lane]) && images->find(addresses[lane])->surface == surface;
    warp.lanes<uint32_t>(inst->op[0])[lane] = isOne ? ~0u : 0;
  }
  return inst + 1;
}

}  // namespace vgpu::emulator
