// Block-compressed formats, decoded as an H100 does.
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "stub/emulator/ptx/lanes/half-values.h"
#include "stub/emulator/ptx/run/sampler.h"

using namespace vgpu::emulator;

namespace {

std::vector<std::byte> bytesOf(const std::string& hex) {
  std::vector<std::byte> bytes;
  for (size_t i = 0; i < hex.size(); i += 2) bytes.push_back(static_cast<std::byte>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

struct Golden {
  Coding coding;
  const char *block, *colours;
};
const Golden golden[] = {
#define BLOCK(coding, block, colours) {Coding::coding, block, colours},
#include "block-golden.inc"
#undef BLOCK
};

struct Filtered {
  Coding coding;
  const char* blocks;
  uint32_t wanted[128];
};
const Filtered filtered[] = {
#define FILTERED(coding, blocks, ...) {Coding::coding, blocks, __VA_ARGS__},
#include "filtered-blocks-golden.inc"
#undef FILTERED
};

bool isSigned(Coding coding) { return coding == Coding::bc4Signed || coding == Coding::bc5Signed; }
bool isFloating(Coding coding) { return coding == Coding::bc6 || coding == Coding::bc6Signed; }
bool isOf8Bits(Coding coding) { return coding <= Coding::bc3 || coding == Coding::bc7; }
unsigned channelsOf(Coding coding) {
  if (isOf8Bits(coding)) return 4;
  return isFloating(coding) ? 3 : coding == Coding::bc4 || coding == Coding::bc4Signed ? 1 : 2;
}

float valueOf(Coding coding, unsigned bits) {
  if (isFloating(coding)) return halfValue(static_cast<uint16_t>(bits));
  if (isSigned(coding)) return static_cast<float>(static_cast<int16_t>(bits) / 32767.0);
  return static_cast<float>(bits / (isOf8Bits(coding) ? 255.0 : 65535.0));
}

class BlockMemory : public ElementReader {
 public:
  explicit BlockMemory(std::vector<std::byte> bytes) : bytes(std::move(bytes)) {}
  const std::byte* at(uint64_t address, uint32_t) override { return bytes.data() + (address - base); }
  static constexpr uint64_t base = 0x1000;

 private:
  std::vector<std::byte> bytes;
};

}  // namespace

TEST_CASE("each texel of a compressed block has the colour that a GPU reads") {
  for (const Golden& each : golden) {
    const auto block = bytesOf(each.block);
    const std::string colours = each.colours;
    const unsigned channels = channelsOf(each.coding), digits = isOf8Bits(each.coding) ? 2 : 4;
    REQUIRE(colours.size() == 16 * channels * digits);
    for (unsigned i = 0; i < 16 * channels; ++i) {
      const unsigned element = i / channels, bits = static_cast<unsigned>(std::stoul(colours.substr(i * digits, digits), nullptr, 16));
      INFO("block ", each.block, " of coding ", static_cast<int>(each.coding), ", element ", element, ", channel ", i % channels);
      const auto colour = decodeElement(each.coding, block.data(), element % 4, element / 4);
      CHECK(static_cast<float>(colour[i % channels]) == valueOf(each.coding, bits));
      if (channels < 4) CHECK(colour[3] == 1);
    }
  }
}

TEST_CASE("compressed blocks are filtered as on a GPU") {
  for (const Filtered& each : filtered) {
    BlockMemory memory(bytesOf(each.blocks));
    ImageView image;
    image.format = {isSigned(each.coding) ? ElementFormat::Kind::signedInteger : ElementFormat::Kind::unsignedInteger,
                    static_cast<uint8_t>(isOf8Bits(each.coding) ? 1 : 2), 4, each.coding};
    image.fractions = image.linear = true;
    image.addressing.fill(Addressing::clamp);
    image.levels.push_back({.address = BlockMemory::base, .width = 16, .height = 16, .pitch = 4 * uint64_t{image.format.bytes()}});
    for (int i = 0; i < 64; ++i) {
      Place place{.axes = 2, .at = {0.6f + 0.375f * (i % 8), 0.6f + 0.375f * (i / 8), 0}};
      const Channels read = sample(image, memory, place);
      INFO("coding ", static_cast<int>(each.coding), ", place ", i);
      CHECK(read[0] == each.wanted[2 * i]);
      CHECK(read[1] == each.wanted[2 * i + 1]);
    }
  }
}
