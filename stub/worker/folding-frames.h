// Reads frames as work that a graph node can express.
#pragma once

#include "stub/gpu/folded-work.h"
#include "stub/worker/execution.h"
#include "vgpu/wire/ring.h"

namespace vgpu::stub {

// What a frame means for the run of its stream.
enum class Foldable : uint8_t {
  NO,    // all frames before it must be issued first
  WORK,  // perhaps a node
  FENCE,  // a fence after the stream's work: it may move to the end of the run
  WAIT,  // the stream waits for an event: the record must have been issued first, and the stream's run ends before the wait
};
Foldable foldableOf(api::Method method);

// The stream, a virtual handle, to which a frame gives work. For methods that are not NO. Throws kj::Exception if the frame is not a valid
// message.
uint64_t streamOf(const Frame& frame);

// Reads the work of a WORK frame. False if no node expresses it, or if it would be refused when executed alone, so that it must be executed
// alone. Makes no driver calls. Throws kj::Exception if the frame is not a valid message.
bool readWork(Execution& on, const Frame& frame, FoldedWork& work);

}  // namespace vgpu::stub
