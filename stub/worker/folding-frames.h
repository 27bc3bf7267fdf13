// Frames as work that a node of a graph expresses.
#pragma once

#include "stub/gpu/folded-work.h"
#include "stub/worker/execution.h"
#include "vgpu/wire/ring.h"

namespace vgpu::stub {

// What a frame is to a run of its stream.
enum class Foldable : uint8_t {
  NO,    // whatever came before must be issued before it
  WORK,  // perhaps a node
  FENCE,  // a fence behind the stream's work: as well behind the rest of the run
  WAIT,  // the stream waits for an event: the record must have been issued, and it begins a run
};
Foldable foldableOf(api::Method method);

// The stream, a virtual handle, that a frame gives work to. Of methods that are not NO. Throws kj::Exception on what is no
// message.
uint64_t streamOf(const Frame& frame);

// The work of a WORK frame. False if no node expresses it, or if it would be refused when executed alone: then it must be. Driver
// calls: none. Throws kj::Exception on what is no message.
bool readWork(Execution& on, const Frame& frame, FoldedWork& work);

}  // namespace vgpu::stub
