// Parameters of numbers, with one piece of data at most, written straight into a frame as Cap'n Proto lays them out
// (capnproto.org/encoding.html): a word that points to the structure, its numbers, its pointer, the data. The same bytes
// as Cap'n Proto's builder makes, without its arena; a launch is built in a third of the time.
//
// The generator derives the builder of every method that can have one (cuda-frames.h): its setters, each with its place.
#pragma once

#include <capnp/message.h>
#include <capnp/serialize.h>
#include <kj/array.h>

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

}  // namespace vgpu::api
