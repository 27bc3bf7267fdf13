#include "vgpu/api/library.h"

#include <algorithm>
#include <unordered_map>

namespace vgpu::api {

const LibraryEntry* findLibraryEntry(uint64_t signature) {
  static const auto bySignature = [] {
    std::unordered_map<uint64_t, const LibraryEntry*> map;
    for (auto& entry : libraryEntries) map.emplace(entry.signature, &entry);
    return map;
  }();
  auto found = bySignature.find(signature);
  return found == bySignature.end() ? nullptr : found->second;
}

const LibraryEntry* findLibraryEnd(uint8_t type) {
  auto found = std::ranges::find_if(libraryEntries, [type](const LibraryEntry& entry) {
    return entry.does == Does::destroy && entry.arguments[0].objectType == type;
  });
  return found == libraryEntries.end() ? nullptr : &*found;
}

size_t madeArgument(const LibraryEntry& entry) {
  auto made = std::ranges::find_if(entry.arguments, [](auto& argument) {
    return argument.what == Argument::made || argument.what == Argument::place;
  });
  return static_cast<size_t>(made - entry.arguments.begin());
}

bool takes(const LibraryEntry& entry, uint8_t wanted, uint8_t given) {
  return given == wanted || (given < objectTypes.size() && objectTypes[given].also == wanted && entry.does != Does::destroy);
}

// library_types.h (CUDA 13.0). The numbers follow no pattern, so each is listed. Types smaller than a byte are packed.
uint32_t bytesOfDataType(uint64_t type) {
  constexpr uint8_t bytes[] = {
      4, 8, 2, 1, 8, 16, 4, 2,   // R_32F R_64F R_16F R_8I C_32F C_64F C_16F C_8I
      1, 2, 4, 8, 4, 8,  2, 4,   // R_8U C_8U R_32I C_32I R_32U C_32U R_16BF C_16BF
      1, 1, 1, 1, 2, 4,  2, 4,   // R_4I C_4I R_4U C_4U R_16I C_16I R_16U C_16U
      8, 16, 8, 16,              // R_64I C_64I R_64U C_64U
  };
  type &= 0xffffffff;
  return type < std::size(bytes) ? bytes[type] : 1;
}

namespace {

bool isComplex(uint64_t type) {
  constexpr uint32_t complexTypes = 1u << 4 | 1u << 5 | 1u << 6 | 1u << 7 | 1u << 9 | 1u << 11 | 1u << 13 | 1u << 15 | 1u << 17 |
                                    1u << 19 | 1u << 21 | 1u << 23 | 1u << 25 | 1u << 27;
  type &= 0xffffffff;
  return type < 32 && (complexTypes >> type & 1) != 0;
}

}  // namespace

// cublas_api.h (CUDA 13.0): 64 and 65 compute in 16 bits, 70, 71 and 79 in 64, the others in 32.
uint32_t bytesOfScale(uint64_t computeType, uint64_t resultType) {
  computeType &= 0xffffffff;
  uint32_t real = computeType == 64 || computeType == 65 ? 2 : computeType == 70 || computeType == 71 || computeType == 79 ? 8 : 4;
  return isComplex(resultType) ? 2 * real : real;
}

uint64_t pointedBytes(const LibraryEntry& entry, size_t index, std::span<const uint64_t> words, uint64_t scaleType) {
  const LibraryArgument& argument = entry.arguments[index];
  uint64_t element = argument.bytes, count = argument.times;
  if (argument.typedBy == TypedBy::dataType) element = bytesOfDataType(words[argument.type]);
  if (argument.typedBy == TypedBy::computeType) element = bytesOfScale(words[argument.type], words[argument.resultType]);
  if (argument.typedBy == TypedBy::object) element = bytesOfDataType(scaleType);
  if (argument.count != noArgument) {
    constexpr uint64_t most = uint64_t{1} << 24;  // more than any frame takes; prevents overflow of the product
    bool isNarrow = entry.arguments[argument.count].bytes == 4;
    auto number = isNarrow ? int64_t{static_cast<int32_t>(words[argument.count])} : static_cast<int64_t>(words[argument.count]);
    count = number < 0 ? 0 : std::min<uint64_t>(static_cast<uint64_t>(number), most);
  }
  return element * count;
}

}  // namespace vgpu::api
