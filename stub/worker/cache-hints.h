// What a program says of the L2 cache, how much of it is for data that stays and which addresses have such data, on a GPU of another model
// than it began on: as much as that allows. All of it only says what would be fast, and the program goes by the figures of the GPU that it
// has seen. Recipes keep what was asked for, so a GPU that allows more has that again. Each of these is said in the log.
#pragma once

#include <capnp/common.h>
#include <cuda.h>
#include <kj/array.h>

#include <vector>

#include "cuda-methods.h"

namespace vgpu::stub {

class Execution;

// Whether a frame may be one of these.
constexpr bool setsCacheHint(api::Method method) {
  return method == api::Method::ctxSetLimit || method == api::Method::streamSetAttribute;
}

// Executes one that the driver has refused with `refused` again, with as much as the GPU allows. CUDA's answer; `refused` if it is none of
// these, or if the GPU is like the one that the program began on.
CUresult setCacheHint(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, CUresult refused);

// The same for the attributes of a launch.
void limitCacheHints(Execution& on, std::vector<CUlaunchAttribute>& attributes);

}  // namespace vgpu::stub
