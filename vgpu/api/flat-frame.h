// Frames and replies: numbers and any number of Data lists, written and read as Cap'n Proto lays them out (capnproto.org/encoding.html): a
// word that points to the structure, its numbers, its pointers, and the data in the order in which it was set. The bytes are those of Cap'n
// Proto's own builder and reader, but there are no arenas: posting a launch takes half the time.
//
// The generator derives the builder and reader of every frame and reply (cuda-frames.h): setters and getters with their offsets. A text is
// Data that ends with a zero byte; a list of numbers and a structure of the vendor's header are Data with their bytes.
//
// A frame may omit its last numbers and its last Data lists; omitted fields read as 0. So a frame that serves several uses is no longer
// than each of them needs (Part).
#pragma once

#include <capnp/common.h>
#include <kj/array.h>
#include <kj/debug.h>
#include <kj/string.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

namespace vgpu::api {

// The builder of a method's frame or reply.
template <typename Structure>
using FrameBuilder = typename Structure::Builder;
template <typename Structure>
using FrameReader = typename Structure::Reader;
// The builder of a frame that has only the first words of numbers and the first Data lists. Setting another field does not compile.
template <typename Structure, unsigned dataWords, unsigned pointers>
using FramePart = typename Structure::template Part<dataWords, pointers>;

// Numbers in a Data list, which may be unaligned. Valid until the frame's next data is set.
template <typename Number>
class Elements {
 public:
  explicit Elements(kj::ArrayPtr<kj::byte> bytes) : bytes(bytes) {}
  void set(size_t index, Number value) {
    std::memcpy(bytes.slice(index * sizeof value, (index + 1) * sizeof value).begin(), &value, sizeof value);
  }

 private:
  kj::ArrayPtr<kj::byte> bytes;
};

template <typename Number>
class ElementsReader {
 public:
  explicit ElementsReader(kj::ArrayPtr<const kj::byte> bytes) : bytes(bytes) {}
  size_t size() const { return bytes.size() / sizeof(Number); }
  Number operator[](size_t index) const {
    Number value;
    std::memcpy(&value, bytes.slice(index * sizeof value, (index + 1) * sizeof value).begin(), sizeof value);
    return value;
  }

 private:
  kj::ArrayPtr<const kj::byte> bytes;
};

template <unsigned dataWords, unsigned pointers>
class FlatBuilder {
 public:
  static constexpr unsigned words = 1 + dataWords + pointers;  // without the data

  // `space` must be zeroed and as long as the message: `words` plus the data, each list rounded up to words.
  explicit FlatBuilder(kj::ArrayPtr<capnp::word> space) : bytes(space.asBytes().begin()), end(space.size()) { begin(); }
  // `space` grows with the data.
  explicit FlatBuilder(std::vector<capnp::word>& space) : grows(&space) {
    space.assign(words, capnp::word{});
    bytes = kj::arrayPtr(space.data(), space.size()).asBytes().begin();
    begin();
  }

 protected:
  // Sets the number at `offset` bytes of the structure.
  template <uint32_t offset, typename Number>
  void set(Number value) {
    static_assert(offset + sizeof value <= 8 * dataWords, "this part of the frame ends before that field");
    put(8 + offset, value);
  }
  template <uint32_t offset>
  void setBit(bool value) {
    static_assert(offset < 64 * dataWords, "this part of the frame ends before that field");
    bytes[8 + offset / 8] |= static_cast<kj::byte>(value << offset % 8);
  }
  // Makes a pointer point to `size` bytes after all earlier data. The returned buffer is valid until the next data is set.
  template <uint32_t pointer>
  kj::ArrayPtr<kj::byte> placeData(size_t size) {
    static_assert(pointer < pointers, "this part of the frame ends before that list");
    constexpr uint64_t list = 1, ofBytes = 2;
    constexpr uint32_t at = 1 + dataWords + pointer;
    size_t begin = next;
    next += (size + sizeof(capnp::word) - 1) / sizeof(capnp::word);
    if (grows != nullptr) {
      grows->resize(next);
      bytes = kj::arrayPtr(grows->data(), grows->size()).asBytes().begin();
      end = next;
    }
    KJ_REQUIRE(next <= end && size >> 29 == 0, "more data than the frame has space for", size);
    put<uint64_t>(8 * at, list | static_cast<uint64_t>(begin - at - 1) << 2 | ofBytes << 32 | uint64_t{size} << 35);
    return {bytes + 8 * begin, size};
  }
  template <uint32_t pointer>
  void copyData(const void* data, size_t size) {
    auto place = placeData<pointer>(size);
    if (size != 0) std::memcpy(place.begin(), data, size);
  }

 private:
  void begin() { put<uint64_t>(0, uint64_t{dataWords} << 32 | uint64_t{pointers} << 48); }
  template <typename Number>
  void put(uint32_t offset, Number value) {
    std::memcpy(bytes + offset, &value, sizeof value);
  }

  kj::byte* bytes = nullptr;
  size_t next = words, end = words;
  std::vector<capnp::word>* grows = nullptr;
};

// A frame or reply in `words`, one Cap'n Proto segment, not trusted. A getter throws kj::Exception if it is not a valid message.
class FlatReader {
 public:
  explicit FlatReader(kj::ArrayPtr<const capnp::word> words) : words(words) {
    uint64_t root = words.size() == 0 ? 0 : word(0);
    if (root == 0) return;
    uint64_t dataWords = root >> 32 & 0xffff, begin = target(0, root);
    pointers = root >> 48;
    KJ_REQUIRE((root & 3) == 0, "the parameters' pointer is not a structure pointer");
    KJ_REQUIRE(begin <= words.size() && dataWords + pointers <= words.size() - begin, "parameters that extend past the end of their frame");
    numbers = words.slice(begin, begin + dataWords).asBytes();
    firstPointer = begin + dataWords;
  }

 protected:
  // A field that the writer's older schema lacks reads as 0, its default.
  template <typename Number>
  Number get(uint32_t offset) const {
    Number value{};
    if (offset + sizeof value <= numbers.size()) std::memcpy(&value, numbers.begin() + offset, sizeof value);
    return value;
  }
  bool getBit(uint32_t offset) const { return get<uint8_t>(offset / 8) >> offset % 8 & 1; }
  kj::ArrayPtr<const kj::byte> readData(uint32_t pointer) const {
    constexpr uint64_t list = 1, ofBytes = 2;
    uint64_t at = firstPointer + pointer, it = pointer < pointers ? word(at) : 0;
    if (it == 0) return nullptr;
    uint64_t begin = target(at, it), bytes = it >> 35;
    KJ_REQUIRE((it & 3) == list && (it >> 32 & 7) == ofBytes, "pointer is not a Data list");
    KJ_REQUIRE(begin <= words.size() && bytes <= (words.size() - begin) * sizeof(capnp::word), "data that extends past the end of its "
                                                                                               "frame");
    return words.slice(begin, words.size()).asBytes().slice(0, bytes);
  }
  kj::StringPtr readText(uint32_t pointer) const {
    auto data = readData(pointer);
    if (data.size() == 0) return "";
    KJ_REQUIRE(data.back() == 0, "text does not end with a zero byte");
    return kj::StringPtr(data.asChars().begin(), data.size() - 1);
  }
  template <typename Structure>
  Structure readStructure(uint32_t pointer) const {
    static_assert(std::is_trivially_copyable_v<Structure>);
    Structure value{};
    auto data = readData(pointer);
    KJ_REQUIRE(data.size() == 0 || data.size() == sizeof value, "a structure of the wrong size", data.size(), sizeof value);
    if (data.size() != 0) std::memcpy(&value, data.begin(), sizeof value);
    return value;
  }

 private:
  uint64_t word(uint64_t index) const {
    uint64_t value;
    std::memcpy(&value, words.begin() + index, sizeof value);
    return value;
  }
  // The target of a pointer at word `index`; beyond every frame if it is before the message.
  static uint64_t target(uint64_t index, uint64_t value) {
    return index + 1 + static_cast<uint64_t>(int64_t{static_cast<int32_t>(value & ~uint64_t{3})} >> 2);
  }

  kj::ArrayPtr<const capnp::word> words;
  kj::ArrayPtr<const kj::byte> numbers;
  uint64_t firstPointer = 0, pointers = 0;
};

}  // namespace vgpu::api
