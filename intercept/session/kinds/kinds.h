// The client's state for each kind of object: the type that the kind's row names (vgpu/api/cuda.table), or a plain head.
//
// Any thread may read the state of an object that another thread ends: the state's memory stays in place and always belongs to an object of
// that kind. So members that change during an object's life are atomic or guarded by the state itself; the others are written before the
// program gets the handle. The thread that reuses the place calls reset() first, which destroys what the state points to: so, as in CUDA, a
// program must not destroy an object that another thread's call uses.
#pragma once

#include "cuda-kind-states.h"

namespace vgpu::client {

// The state type of `kind`.
template <api::Kind kind>
using StateOf = typename KindState<kind>::Type;

}  // namespace vgpu::client
