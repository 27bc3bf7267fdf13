// From a method number to the handler that executes it. The generator writes the table and most of the handlers.
#pragma once

#include "stub/worker/execution.h"

namespace vgpu::stub {

// `words`: the method's parameters, as the program sent them. Throws kj::Exception if they are not a valid message.
CUresult dispatch(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, Reply& reply);

// Destroys an object in the driver. CUDA's result; success for a kind that has no destroyer in the table.
CUresult destroyReal(const Driver& driver, api::Kind kind, uint64_t real);

// For a method that has no frame, or that this worker does not know: no honest client sends it.
CUresult refuse(api::Method method);

}  // namespace vgpu::stub
