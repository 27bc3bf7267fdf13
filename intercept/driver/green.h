// Entries about green contexts that rows cannot express (session/green-contexts.h). Rows of vgpu/api/cuda.table name these functions.
#pragma once

#include "intercept/session/entry.h"

namespace vgpu::client {

// The contexts of a stream; the green one is null if the stream has none. Either output may be null.
CUresult contextsOfStream(CUstream stream, CUcontext* context, CUgreenCtx* green);
// Runs `body` with the context of a green context.
template <typename Body>
CUresult withContextOf(CUgreenCtx green, Body&& body) {
  CUcontext context = nullptr;
  if (CUresult bad = cuCtxFromGreenCtx(&context, green)) return bad;
  return body(context);
}

}  // namespace vgpu::client
