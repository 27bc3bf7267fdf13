// The answer to one frame, in the worker's own memory until it is copied into the caller's slot.
#pragma once

#include <capnp/common.h>

#include <cuda.h>

#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "vgpu/api/flat-frame.h"
#include "vgpu/wire/segment.h"

namespace vgpu::stub {

class Reply;

// The rest of a call that is slow by nature (slow-calls.h): `work` on the helper thread, then `end` on the GPU's, which is told the
// work's result and gives the reply. Neither may look at the frame.
struct SlowCall {
  std::function<CUresult()> work;
  std::function<CUresult(CUresult, Reply&)> end;
};

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

  // The frame is executed later, by these; the handler returns success, and has not begun the results.
  void putOff(SlowCall call) { slow = std::move(call); }
  // The same for a call whose result is all that it gives.
  void putOff(std::function<CUresult()> work) { putOff({std::move(work), [](CUresult result, Reply&) { return result; }}); }
  std::optional<SlowCall> takeSlowCall() { return std::exchange(slow, std::nullopt); }

  // The message, valid until reset(); empty if no results were begun. Throws kj::Exception if it is larger than maxReplyBytes.
  std::span<const capnp::word> words();
  void reset();

 private:
  std::vector<capnp::word> message;  // keeps its memory over reset()
  bool byGpu = false;
  std::optional<SlowCall> slow;
};

}  // namespace vgpu::stub
