// The answer to one frame, in the worker's own memory until it is copied into the caller's slot.
#pragma once

#include <capnp/message.h>
#include <kj/array.h>

#include <array>
#include <optional>
#include <span>

#include "vgpu/wire/segment.h"

namespace vgpu::stub {

class Reply {
 public:
  // Begins the results message. Once a frame.
  template <typename Results>
  typename Results::Builder init() {
    return message.emplace(kj::arrayPtr(scratch.data(), scratch.size())).template initRoot<Results>();
  }
  // The GPU will write the caller's slot itself: the worker does not complete the frame.
  void leaveToGpu() { byGpu = true; }

  bool isLeftToGpu() const { return byGpu; }
  // The message as one segment, valid until reset(); empty where no results were begun. Throws kj::Exception where it is
  // larger than maxReplyBytes.
  std::span<const capnp::word> words();
  void reset();

 private:
  std::array<capnp::word, replyBytes / sizeof(capnp::word)> scratch{};
  std::optional<capnp::MallocMessageBuilder> message;
  kj::Array<capnp::word> joined;  // a message that outgrew `scratch`
  bool byGpu = false;
};

}  // namespace vgpu::stub
