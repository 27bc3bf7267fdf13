// From a method number to the code that executes it. The generator writes the table and most of the rows.
#pragma once

#include "stub/worker/execution.h"

namespace vgpu::stub {

// `words`: the method's parameters, as the program sent them. Throws kj::Exception where they are no message.
CUresult dispatch(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, Reply& reply);

// Destroys an object in the driver. CUDA's answer; success for a kind that the table names no destroyer of.
CUresult destroyReal(const Driver& driver, api::Kind kind, uint64_t real);

// A method that has no frame, or that this worker does not know: no honest client sends it.
CUresult refuse(api::Method method);

}  // namespace vgpu::stub
