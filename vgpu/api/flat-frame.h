// Parameters of numbers, with one piece of data at most, written and read as Cap'n Proto lays them out
// (capnproto.org/encoding.html): a word that points to the structure, its numbers, its pointer, the data. The same
// bytes as Cap'n Proto's own builder makes and its reader takes, without their arenas: posting a launch takes half the
// time.
//
// The generator derives builder and reader of every method that can have them (cuda-frames.h): setters and getters,
// each with its place.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>
#include <kj/debug.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace vgpu::api {

struct CapnpMessage {
  capnp::FlatMessageBuilder message;
};

// The builder of a method's parameters in `space`, which is zero. This one, for any method, is Cap'n Proto's.
template <typename Params>
class FrameBuilder : CapnpMessage, public Params::Builder {
 public:
  explicit FrameBuilder(kj::ArrayPtr<capnp::word> space)
      : CapnpMessage{capnp::FlatMessageBuilder(space)}, Params::Builder(message.template initRoot<Params>()) {}
};

template <unsigned dataWords, unsigned pointers>
class FlatFrame {
  static_assert(pointers <= 1);

 public:
  // `space` is zero and as long as the message: 1 + dataWords + pointers and what the data needs.
  explicit FlatFrame(kj::ArrayPtr<capnp::word> space) : bytes(space.asBytes().begin()) {
    put<uint64_t>(0, uint64_t{dataWords} << 32 | uint64_t{pointers} << 48);
  }

 protected:
  // The number that lies at `offset` bytes of the structure.
  template <typename Number>
  void set(uint32_t offset, Number value) {
    put(8 + offset, value);
  }
  void setBit(uint32_t offset, bool value) { bytes[8 + offset / 8] |= static_cast<kj::byte>(value << offset % 8); }
  // Makes the one pointer point to `size` bytes right behind it.
  kj::ArrayPtr<kj::byte> placeData(uint32_t size) {
    static_assert(pointers == 1);
    constexpr uint64_t list = 1, ofBytes = 2;
    put<uint64_t>(8 + 8 * dataWords, list | ofBytes << 32 | uint64_t{size} << 35);
    return {bytes + 16 + 8 * dataWords, size};
  }

  void copyData(kj::ArrayPtr<const kj::byte> data) {
    auto place = placeData(static_cast<uint32_t>(data.size()));
    if (data.size() != 0) std::memcpy(place.begin(), data.begin(), data.size());
  }

 private:
  template <typename Number>
  void put(uint32_t offset, Number value) {
    std::memcpy(bytes + offset, &value, sizeof value);
  }

  kj::byte* bytes;
};

class CapnpReader {
 public:
  // A message of the program's may not cost more to read than it is long: bounds nested and shared pointers.
  explicit CapnpReader(kj::ArrayPtr<const capnp::word> words)
      : segment(words),
        message(kj::arrayPtr(&segment, 1), {.traversalLimitInWords = words.size() + 64, .nestingLimit = 8}) {}

 protected:
  kj::ArrayPtr<const capnp::word> segment;
  capnp::SegmentArrayMessageReader message;
};

// A method's parameters in `words`, one segment of Cap'n Proto's, not trusted. Throws kj::Exception where they are no
// message. This one, for any method, is Cap'n Proto's.
template <typename Params>
class FrameReader : CapnpReader, public Params::Reader {
 public:
  explicit FrameReader(kj::ArrayPtr<const capnp::word> words)
      : CapnpReader(words), Params::Reader(message.template getRoot<Params>()) {}
};

class FlatReader {
 public:
  explicit FlatReader(kj::ArrayPtr<const capnp::word> words) : words(words) {
    uint64_t root = words.size() == 0 ? 0 : word(0);
    if (root == 0) return;
    uint64_t dataWords = root >> 32 & 0xffff, pointers = root >> 48, begin = target(0, root);
    KJ_REQUIRE((root & 3) == 0, "parameters that are no structure");
    KJ_REQUIRE(begin <= words.size() && dataWords + pointers <= words.size() - begin, "parameters beyond their frame");
    numbers = words.slice(begin, begin + dataWords).asBytes();
    if (pointers != 0) pointer = begin + dataWords;
  }

 protected:
  // What a writer of an older schema did not know is 0, as its default.
  template <typename Number>
  Number get(uint32_t offset) const {
    Number value{};
    if (offset + sizeof value <= numbers.size()) std::memcpy(&value, numbers.begin() + offset, sizeof value);
    return value;
  }
  bool getBit(uint32_t offset) const { return get<uint8_t>(offset / 8) >> offset % 8 & 1; }
  kj::ArrayPtr<const kj::byte> readData() const {
    constexpr uint64_t list = 1, ofBytes = 2;
    uint64_t it = pointer == 0 ? 0 : word(pointer);
    if (it == 0) return nullptr;
    uint64_t begin = target(pointer, it), bytes = it >> 35;
    KJ_REQUIRE((it & 3) == list && (it >> 32 & 7) == ofBytes, "pointer is not a Data list");
    KJ_REQUIRE(begin <= words.size() && bytes <= (words.size() - begin) * sizeof(capnp::word), "data beyond its frame");
    return words.slice(begin, words.size()).asBytes().slice(0, bytes);
  }

 private:
  uint64_t word(uint64_t index) const {
    uint64_t value;
    std::memcpy(&value, words.begin() + index, sizeof value);
    return value;
  }
  // Where a pointer at the word `index` points to; beyond every frame where that is before the message.
  static uint64_t target(uint64_t index, uint64_t value) {
    return index + 1 + static_cast<uint64_t>(int64_t{static_cast<int32_t>(value & ~uint64_t{3})} >> 2);
  }

  kj::ArrayPtr<const capnp::word> words;
  kj::ArrayPtr<const kj::byte> numbers;
  uint64_t pointer = 0;  // its word; 0: there is none
};

}  // namespace vgpu::api
