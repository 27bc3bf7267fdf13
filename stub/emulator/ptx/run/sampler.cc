#include "stub/emulator/ptx/run/sampler.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "stub/emulator/ptx/lanes/half-values.h"

namespace vgpu::emulator {
namespace {

using Kind = ElementFormat::Kind;

constexpr int weightOne = 256;  // the weight 1

// ---- values

double decodeFraction(Kind kind, unsigned bits, uint32_t raw) {
  if (kind == Kind::unsignedInteger) return raw / static_cast<double>((uint64_t{1} << bits) - 1);
  const double most = static_cast<double>((uint64_t{1} << (bits - 1)) - 1);
  return std::max(-1.0, static_cast<int32_t>(raw) / most);
}

// IEC 61966-2-1.
double linearOfSrgb(double v) { return v <= 0.04045 ? v / 12.92 : std::pow((v + 0.055) / 1.055, 2.4); }

// An element that was read: its bytes, or its colour in a block.
struct Element {
  const std::byte* bytes = nullptr;  // nullptr: the border, or not mapped
  std::array<double, 4> colour{};
  explicit operator bool() const { return bytes != nullptr; }
};

uint32_t rawChannel(const ElementFormat& format, const std::byte* element, int channel) {
  if (format.coding == Coding::tenBits) {
    uint32_t v;
    std::memcpy(&v, element, sizeof v);
    return v >> (10 * channel) & 0x3ff;
  }
  const std::byte* const from = element + channel * format.channelBytes;
  const bool isSigned = format.kind == Kind::signedInteger;
  if (format.channelBytes == 1) {
    const auto v = static_cast<uint8_t>(*from);
    return isSigned ? static_cast<uint32_t>(static_cast<int8_t>(v)) : v;
  }
  if (format.channelBytes == 2) {
    uint16_t v;
    std::memcpy(&v, from, sizeof v);
    return isSigned ? static_cast<uint32_t>(static_cast<int16_t>(v)) : v;
  }
  uint32_t v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

bool readsFloats(const ImageView& image) { return image.format.kind == Kind::floating || image.fractions; }

double valueOf(const ImageView& image, const Element& element, int channel) {
  const ElementFormat& format = image.format;
  if (isBlock(format.coding)) return image.srgb && channel < 3 ? linearOfSrgb(element.colour[channel]) : element.colour[channel];
  const uint32_t raw = rawChannel(format, element.bytes, channel);
  if (format.coding == Coding::tenBits) return decodeFraction(format.kind, channel < 3 ? 10 : 2, raw);
  if (format.kind == Kind::floating)
    return format.channelBytes == 2 ? halfValue(static_cast<uint16_t>(raw)) : std::bit_cast<float>(raw);
  const double value = decodeFraction(format.kind, 8u * format.channelBytes, raw);
  return image.srgb && channel < 3 ? linearOfSrgb(value) : value;
}

double borderOf(const ImageView& image, int channel) {
  const double value = image.border[channel];
  if (image.format.kind == Kind::floating) return value;
  const bool isSigned = image.format.kind == Kind::signedInteger;
  const double most = static_cast<double>((uint64_t{1} << (8 * image.format.channelBytes - isSigned)) - 1);
  return std::ceil(std::clamp(value, isSigned ? -1.0 : 0.0, 1.0) * most - 0.5) / most;  // rounded to a value of the format
}

// To nearest, ties away from zero.
float roundToFloat(double value) {
  const auto nearest = static_cast<float>(value);
  const float away = std::nextafter(nearest, std::copysign(INFINITY, nearest));
  return std::fabs(away) > std::fabs(value) && std::fabs(away - value) == std::fabs(value - nearest) ? away : nearest;
}
float roundToHalf(double value) {
  const uint16_t bits = halfBits(value);
  const float nearest = halfValue(bits), away = halfValue(static_cast<uint16_t>(bits + 1));
  return std::fabs(away) > std::fabs(value) && std::fabs(away - value) == std::fabs(value - nearest) ? away : nearest;
}
// Rounds to multiples of 1/parts. Values have weights of 256ths; the tolerance keeps a tie a tie despite errors of binary fractions.
float roundToParts(double value, double parts) {
  return static_cast<float>(std::round(value * parts + std::copysign(1e-6, value)) / parts);
}

// Rounds a filtered value to the hardware's precision before the conversion to float.
float rounded(const ImageView& image, double value) {
  if (image.format.kind == Kind::floating)
    return image.format.channelBytes == 2 ? roundToHalf(value) : roundToFloat(value);
  return roundToParts(value, image.format.kind == Kind::signedInteger ? 32767 : 65535);
}

// ---- positions

// An axis at a position: the element there or, for linear filtering, the near element and the weight of the far one.
struct Axis {
  int64_t near = 0;
  int far = 0;
};

// An index that no element has: the border.
constexpr int64_t borderElement = -1;

int64_t addressed(int64_t index, int64_t count, Addressing mode) {
  switch (mode) {
    case Addressing::wrap:
      return ((index % count) + count) % count;
    case Addressing::mirror: {
      const int64_t within = ((index % (2 * count)) + 2 * count) % (2 * count);
      return std::min(within, 2 * count - 1 - within);
    }
    case Addressing::border:
      return index >= 0 && index < count ? index : borderElement;
    case Addressing::clamp:
      break;
  }
  return std::clamp<int64_t>(index, 0, count - 1);
}

// Wrapping requires normalized coordinates; otherwise it is clamping (CUDA Programming Guide, "Texture Object API").
Addressing modeOf(const ImageView& image, int axis) {
  const Addressing mode = image.addressing[axis];
  const bool repeats = mode == Addressing::wrap || mode == Addressing::mirror;
  return repeats && !image.normalized ? Addressing::clamp : mode;
}

// The coordinate in elements.
double scaled(const ImageView& image, Addressing mode, double at, uint32_t count) {
  constexpr double fractionScale = 1 << 21, farthest = 1 << 24;
  if (std::isnan(at)) return 0;
  if (!image.normalized) return std::clamp(at, -farthest, farthest);
  if (mode == Addressing::wrap || mode == Addressing::mirror) at = std::isinf(at) ? 0 : std::fmod(at, 2);
  return std::clamp(std::floor(at * fractionScale) / fractionScale * count, -farthest, farthest);
}

Axis axisAt(const ImageView& image, bool linear, Addressing mode, double at, uint32_t count) {
  const double place = scaled(image, mode, at, count);
  if (!linear) return {static_cast<int64_t>(std::floor(place)), 0};
  const auto fixed = static_cast<int64_t>(std::floor(place * weightOne + 0.5)) - weightOne / 2;
  return {fixed >> 8, static_cast<int>(fixed & 255)};
}

// ---- filtering

struct Box {
  std::array<Axis, 3> axes{};
  std::array<Addressing, 3> modes{Addressing::clamp, Addressing::clamp, Addressing::clamp};
  int count = 1;      // number of axes with a far side
  int64_t slice = 0;  // the layer or face
};

int round256(int product) { return (product + 128) >> 8; }

// Weights of the 2^count corners; bit k of the index: the corner is on the far side of axis k.
std::array<int, 8> weightsOf(const Box& box) {
  const int x = box.axes[0].far, y = box.axes[1].far, z = box.axes[2].far;
  if (box.count == 1) return {weightOne - x, x};
  const int xy = round256(x * y);
  if (box.count == 2) return {weightOne - x - y + xy, x - xy, y - xy, xy};
  const int xz = round256(x * z), yz = round256(y * z), xyz = round256(xy * z);
  return {weightOne - x - y - z + xy + xz + yz - xyz,
          x - xy - xz + xyz,
          y - xy - yz + xyz,
          xy - xyz,
          z - xz - yz + xyz,
          xz - xyz,
          yz - xyz,
          xyz};
}

class Sampler {
 public:
  Sampler(const ImageView& image, ElementReader& reader, const ElementGrid& grid)
      : image(image), reader(reader), grid(grid) {}

  // The element at a corner.
  Element corner(const Box& box, int corner) const {
    const uint32_t counts[] = {grid.width, grid.height, grid.slices};
    int64_t index[3] = {0, 0, box.slice};
    for (int axis = 0; axis < box.count; ++axis) {
      index[axis] = addressed(box.axes[axis].near + (corner >> axis & 1), counts[axis], box.modes[axis]);
      if (index[axis] == borderElement) return {};
    }
    return element(index[0], index[1], index[2]);
  }

  Element element(int64_t x, int64_t y, int64_t z) const {
    const auto side = static_cast<int64_t>(image.format.side());
    Element found{unit(static_cast<uint64_t>(x / side), static_cast<uint64_t>(y / side), static_cast<uint64_t>(z))};
    if (found && side != 1)
      found.colour = decodeElement(image.format.coding, found.bytes, static_cast<unsigned>(x % side), static_cast<unsigned>(y % side));
    return found;
  }

  double channelAt(const Element& element, int channel) const {
    return element ? valueOf(image, element, channel) : borderOf(image, channel);
  }

  void filter(const Box& box, double (&values)[4]) const {
    const std::array<int, 8> weights = weightsOf(box);
    for (int c = 0; c < 1 << box.count; ++c) {
      if (weights[c] == 0) continue;
      const Element from = corner(box, c);
      for (int channel = 0; channel < image.format.channels; ++channel)
        values[channel] += weights[c] * channelAt(from, channel) / weightOne;
    }
  }

  Channels nearest(const Box& box) const {
    Channels out{};
    const Element from = corner(box, 0);
    for (int channel = 0; channel < image.format.channels; ++channel) {
      if (readsFloats(image)) {
        out[channel] = std::bit_cast<uint32_t>(static_cast<float>(channelAt(from, channel)));
      } else if (from) {
        out[channel] = rawChannel(image.format, from.bytes, channel);
      } else {
        out[channel] = std::bit_cast<uint32_t>(image.border[channel]);
      }
    }
    return out;
  }

 private:
  // The bytes of an element or a block.
  const std::byte* unit(uint64_t x, uint64_t y, uint64_t z) const {
    if (grid.tiles) return unitOfTile(x, y, z + grid.firstSlice);
    const uint32_t bytes = image.format.bytes();
    const uint64_t address = grid.address + z * grid.slicePitch + y * grid.pitch + x * bytes;
    const std::byte* const found = reader.at(address, bytes);
    if (!found) reader.failed = address;
    return found;
  }
  const std::byte* unitOfTile(uint64_t x, uint64_t y, uint64_t z) const {
    static constexpr std::byte zeros[16] = {};
    const std::byte* const found = grid.tiles->runAt(x, y, z).at;
    if (found) return found;
    if (!grid.tiles->readsZeros) return reader.failed = noMemory, nullptr;
    reader.resident = false;
    return zeros;
  }

  const ImageView& image;
  ElementReader& reader;
  const ElementGrid& grid;
};

// The face in the direction, and the position on it, from 0 to 1 (CUDA Programming Guide, "Cubemap Textures").
Place onFace(const Place& place) {
  const double x = place.at[0], y = place.at[1], z = place.at[2];
  const double ax = std::fabs(x), ay = std::fabs(y), az = std::fabs(z);
  double s, t, m;
  uint32_t face;
  if (az >= ax && az >= ay)
    face = z < 0 ? 5 : 4, m = az, s = z < 0 ? -x : x, t = -y;
  else if (ay >= ax)
    face = y < 0 ? 3 : 2, m = ay, s = x, t = y < 0 ? -z : z;
  else
    face = x < 0 ? 1 : 0, m = ax, s = x < 0 ? z : -z, t = -y;
  Place flat = place;
  flat.axes = 2;
  flat.cube = false;
  flat.at = {m == 0 ? 0.5 : (s / m + 1) / 2, m == 0 ? 0.5 : (t / m + 1) / 2, 0};
  flat.layer = place.layer * 6 + face;
  return flat;
}

Box boxAt(const ImageView& image, const ElementGrid& grid, const Place& place, bool linear) {
  const uint32_t counts[] = {grid.width, grid.height, grid.slices};
  Box box;
  box.count = place.axes;
  for (int axis = 0; axis < place.axes; ++axis) {
    box.modes[axis] = modeOf(image, axis);
    if (place.whole)
      box.axes[axis].near = static_cast<int64_t>(place.at[axis]);
    else
      box.axes[axis] = axisAt(image, linear, box.modes[axis], place.at[axis], counts[axis]);
    box.axes[axis].near += place.offset[axis];
  }
  // The filter treats a one-dimensional image as the first row of a two-dimensional one, also if the row before it is the border.
  if (place.axes == 1 && linear && image.addressing[1] == Addressing::border) {
    box.count = 2;
    box.axes[1] = {-1, weightOne / 2};
    box.modes[1] = Addressing::border;
  }
  box.slice = std::min<int64_t>(place.layer, grid.slices - 1);
  return box;
}

void sampleLevel(const ImageView& image, ElementReader& reader, size_t level, const Place& place, double (&values)[4]) {
  const ElementGrid& grid = image.levels[level];
  Sampler(image, reader, grid).filter(boxAt(image, grid, place, image.linear), values);
}

double cutTo256ths(double value) { return std::floor(value * weightOne) / weightOne; }

double clampedLevel(const ImageView& image, std::optional<float> level) {
  double wanted = 0;
  if (level && !std::isnan(*level))
    wanted = cutTo256ths(std::clamp(*level, -64.0f, 64.0f)) + cutTo256ths(image.levelBias);
  if (std::isnan(wanted)) wanted = 0;  // the bias is a NaN
  const double bounded = std::max<double>(std::min<double>(wanted, image.mostLevel), image.leastLevel);
  return std::clamp(bounded, 0.0, static_cast<double>(image.levels.size() - 1));
}

Channels asFloats(const ImageView& image, const double (&values)[4]) {
  Channels out{};
  for (int channel = 0; channel < image.format.channels; ++channel)
    out[channel] = std::bit_cast<uint32_t>(rounded(image, values[channel]));
  return out;
}

}  // namespace

Channels sample(const ImageView& image, ElementReader& reader, const Place& asked, std::optional<float> level) {
  if (image.levels[0].width == 0) return {};
  const Place place = asked.cube ? onFace(asked) : asked;
  if (image.line) {
    const double at = std::floor(place.at[0]) + place.offset[0];
    if (!(at >= 0 && at < image.levels[0].width)) return {};
    Box box;
    box.axes[0].near = static_cast<int64_t>(at);
    return Sampler(image, reader, image.levels[0]).nearest(box);
  }
  const double wanted = clampedLevel(image, level);
  const bool between = image.linearMipmap && image.levels.size() > 1;
  const auto base = static_cast<size_t>(between ? std::floor(wanted) : std::floor(wanted + 0.5));
  const int far = between ? static_cast<int>(std::floor((wanted - static_cast<double>(base)) * weightOne)) : 0;
  const bool linear = image.linear && !place.whole;
  if (!linear && far == 0) {
    const ElementGrid& grid = image.levels[base];
    return Sampler(image, reader, grid).nearest(boxAt(image, grid, place, false));
  }
  double values[4]{}, next[4]{};
  sampleLevel(image, reader, base, place, values);
  if (far != 0) {
    sampleLevel(image, reader, base + 1, place, next);
    for (int channel = 0; channel < 4; ++channel)
      values[channel] = (values[channel] * (weightOne - far) + next[channel] * far) / weightOne;
  }
  return asFloats(image, values);
}

Channels gather(const ImageView& image, ElementReader& reader, const Place& place, int component) {
  const ElementGrid& grid = image.levels[0];
  if (grid.width == 0) return {};
  const Sampler sampler(image, reader, grid);
  const Box box = boxAt(image, grid, place, true);
  Channels out{};
  if (component >= image.format.channels) return out;
  constexpr int cornerOrder[] = {2, 3, 1, 0};
  for (int i = 0; i < 4; ++i) {
    const Element from = sampler.corner(box, cornerOrder[i]);
    if (readsFloats(image))
      out[i] = std::bit_cast<uint32_t>(static_cast<float>(sampler.channelAt(from, component)));
    else
      out[i] = from ? rawChannel(image.format, from.bytes, component) : std::bit_cast<uint32_t>(image.border[component]);
  }
  return out;
}

float levelOf(const ImageView& image, const Place& place, const std::array<float, 3>& dx,
              const std::array<float, 3>& dy) {
  const ElementGrid& grid = image.levels[0];
  const double counts[] = {static_cast<double>(grid.width), static_cast<double>(grid.height),
                           static_cast<double>(grid.slices)};
  double x = 0, y = 0;
  for (int axis = 0; axis < place.axes; ++axis) {
    const double scale = image.normalized ? counts[axis] : 1;
    x += dx[axis] * scale * dx[axis] * scale;
    y += dy[axis] * scale * dy[axis] * scale;
  }
  const double longest = std::max(x, y);
  return longest > 0 ? static_cast<float>(std::log2(longest) / 2) : -INFINITY;
}

}  // namespace vgpu::emulator
