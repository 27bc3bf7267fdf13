// The reply to one frame, in the worker's own memory until it is copied into the caller's slot.
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

// The rest of a call that is slow by nature (slow-calls.h): `work` runs on the helper thread, then `end` on the GPU's thread, with the
// work's result, and gives the reply. Neither may read the frame.
struct SlowCall {
  std::function<CUresult()> work;
  std::function<CUresult(CUresult, Reply&)> end;
};

class Reply {
 public:
  // Begins the results message; once for each frame. The builder is valid until reset().
  template <typename Results>
  api::FrameBuilder<Results> init() {
    return api::FrameBuilder<Results>(message);
  }
  // The GPU writes the caller's slot itself, so the worker does not complete the frame.
  void leaveToGpu() { byGpu = true; }

  bool isLeftToGpu() const { return byGpu; }

  // Defers the call: `slow` executes it later. The handler then returns success and must not have begun the results.
  void putOff(SlowCall call) { slow = std::move(call); }
  // The same for a call whose reply is its result alone.
  void putOff(std::function<CUresult()> work) { putOff({std::move(work), [](CUresult result, Reply&) { return result; }}); }
  std::optional<SlowCall> takeSlowCall() { return std::exchange(slow, std::nullopt); }

  // The message, valid until reset(); empty if no results were begun. Throws kj::Exception if it is larger than maxReplyBytes.
  std::span<const capnp::word> words();
  void reset();

 private:
  std::vector<capnp::word> message;  // reset() keeps its capacity
  bool byGpu = false;
  std::optional<SlowCall> slow;
};

}  // namespace vgpu::stub
