// The client's state of each kind of object: what its row says (vgpu/api/cuda.table), or a head.
//
// Any thread may read the state of an object that another ends: it stays where it is, and is an object's of that kind for ever. So
// what changes while the object lives is atomic or guarded by the state itself, and what does not is written before the handle is
// the program's. reset() is called by the thread that has the place, before it is another object's; what a state points to ends then,
// so a program may not end an object that another thread's call is about, as CUDA says.
#pragma once

#include "cuda-kind-states.h"

namespace vgpu::client {

// Of an object of `kind`.
template <api::Kind kind>
using StateOf = typename KindState<kind>::Type;

}  // namespace vgpu::client
