// The answer to one frame, in the worker's own memory until it is copied into the caller's slot.
#pragma once

#include <capnp/common.h>

#include <span>
#include <vector>

#include "vgpu/api/flat-frame.h"
#include "vgpu/wire/segment.h"

namespace vgpu::stub {

class Reply {
 public:
  // Begins the results message. Once a frame. The builder is valid until reset().
  template <typename Results>
  api::FrameBuilder<Results> init() {
    return api::FrameBuilder<Results>(message);
  }
  // The GPU will write the caller's slot itself: the worker does not complete the frame.
  void leaveToGpu() { byGpu = true; }

  bool isLeftToGpu() const { return byGpu; }
  // The message, valid until reset(); empty if no results were begun. Throws kj::Exception if it is larger than maxReplyBytes.
  std::span<const capnp::word> words();
  void reset();

 private:
  std::vector<capnp::word> message;  // keeps its memory over reset()
  bool byGpu = false;
};

}  // namespace vgpu::stub
