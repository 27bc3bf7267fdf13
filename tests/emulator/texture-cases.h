// Textures and the coordinates at which they are read, for the interpreter's test and for the program that records what a real GPU reads.
// All of it is derived from the seeds in a row of texture-golden.inc.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace vgpu::emulator {

struct TextureCase {
  std::string_view geometry, format;
  int width, height, slices;  // 0 as in CUDA: the axis does not exist
  int addressing, linear;     // CUDA's enumeration values
  bool normalized;
  uint32_t elementSeed, placeSeed;
  int places;
  uint64_t digest;
};

inline const TextureCase textureCases[] = {
#include "texture-golden.inc"
};

struct TextureFormat {
  std::string_view name;
  int channelBytes, channels, kind;  // kind: 0 unsigned, 1 signed, 2 floating point
};
inline constexpr TextureFormat textureFormats[] = {
    {"f32", 4, 1, 2},  {"f32x4", 4, 4, 2}, {"f16x2", 2, 2, 2}, {"u8x4", 1, 4, 0},
    {"s8x2", 1, 2, 1}, {"u16x2", 2, 2, 0}, {"s16", 2, 1, 1},
};
inline const TextureFormat& formatOf(const TextureCase& c) {
  for (const TextureFormat& format : textureFormats)
    if (format.name == c.format) return format;
  return textureFormats[0];
}

struct TextureRandom {
  uint32_t state;
  uint32_t operator()() { return (state = state * 1664525u + 1013904223u) >> 8; }
};

inline bool isLayered(const TextureCase& c) { return c.geometry[0] == 'a'; }
// The border colour's channels: 0.25, 0.5, 0.75 and 1.
inline float borderOf(const TextureCase& c, int channel) { return isLayered(c) ? 0 : 0.25f * (channel + 1); }

// `half` converts a float to the bits of a half.
template <class Half>
std::vector<uint8_t> textureElements(const TextureCase& c, Half half) {
  const TextureFormat& format = formatOf(c);
  TextureRandom random{c.elementSeed};
  const auto atLeastOne = [](int extent) { return static_cast<size_t>(extent ? extent : 1); };
  std::vector<uint8_t> bytes(atLeastOne(c.width) * atLeastOne(c.height) * atLeastOne(c.slices) *
                             static_cast<size_t>(format.channelBytes * format.channels));
  for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random());
  if (format.kind != 2) return bytes;
  const size_t step = static_cast<size_t>(format.channelBytes);
  for (size_t at = 0; at < bytes.size(); at += step) {
    const float value = static_cast<float>(static_cast<int>(random() % 20001) - 10000) / 977.0f;
    const uint16_t narrow = half(value);
    std::memcpy(&bytes[at], step == 4 ? static_cast<const void*>(&value) : &narrow, step);
  }
  return bytes;
}

// x, y, z, and a layer or component. Multiples of fractions of a texel, arbitrary values, and NaN or infinity.
inline std::vector<std::array<float, 4>> texturePlaces(const TextureCase& c) {
  TextureRandom random{c.placeSeed};
  std::vector<std::array<float, 4>> places(static_cast<size_t>(c.places));
  for (auto& place : places) {
    const uint32_t mode = random() % 4;
    const auto coordinate = [&](int extent) {
      const int s = extent ? extent : 1;
      const auto drawn = [&](int range) { return static_cast<int>(random() % static_cast<uint32_t>(range)); };
      const float at =
          mode == 0   ? static_cast<float>(drawn(256 * 3 * s) - 256 * s) / 256.0f
          : mode == 1 ? static_cast<float>(drawn(65536)) * 3.0f * static_cast<float>(s) / 65536 - static_cast<float>(s)
          : mode == 2 ? static_cast<float>(drawn(6 * s + 1) - 2 * s) * 0.5f
                      : static_cast<float>(drawn(512 * 3 * s) - 512 * s) / 512.0f;
      return c.normalized ? at / static_cast<float>(s) : at;
    };
    place[0] = coordinate(c.width);
    place[1] = coordinate(c.height);
    place[2] = coordinate(isLayered(c) ? 0 : c.slices);
    place[3] = isLayered(c) ? static_cast<float>(static_cast<int>(random() % static_cast<uint32_t>(c.slices + 4)) - 2)
                            : static_cast<float>(random() % 4);
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const float odd[] = {NAN, infinity, -infinity, 1e30f, -1e30f, -0.0f, 1e9f};
  for (size_t i = 0; i < std::size(odd); ++i) places[i][0] = odd[i];
  return places;
}

// Negative zeros count as zeros.
inline uint64_t textureDigest(const std::vector<float>& results) {
  uint64_t digest = 0xcbf29ce484222325;
  for (const float value : results) {
    const float plain = value + 0.0f;
    uint32_t bits;
    std::memcpy(&bits, &plain, sizeof bits);
    digest = (digest ^ bits) * 0x100000001b3;
  }
  return digest;
}

}  // namespace vgpu::emulator
