// A program's settings of persisting L2 cache (the set-aside size and access policy windows) on another GPU model than it began on, whose
// limits may be smaller: they are reduced to those limits. They affect only speed, and the program knows only the limits of the GPU that it
// began on. Recipes keep the requested sizes, so a GPU with larger limits restores them. The log reports reductions, those of
// launches once for each GPU.
#pragma once

#include <capnp/common.h>
#include <cuda.h>
#include <kj/array.h>

#include <vector>

#include "cuda-methods.h"

namespace vgpu::stub {

class Execution;

// Whether a frame of `method` may be such a setting.
constexpr bool setsCacheHint(api::Method method) {
  return method == api::Method::ctxSetLimit || method == api::Method::streamSetAttribute;
}

// Repeats a setting that the driver has refused with `refused`, reduced to what the GPU allows. CUDA's result; `refused` if the frame is no
// such setting, if it is within the limits, or if the program began on the same GPU model.
CUresult setCacheHint(Execution& on, api::Method method, kj::ArrayPtr<const capnp::word> words, CUresult refused);

// Reduces the access policy window in the attributes of a launch to what the GPU allows; removes it if the GPU allows none.
void limitCacheHints(Execution& on, std::vector<CUlaunchAttribute>& attributes);

}  // namespace vgpu::stub
