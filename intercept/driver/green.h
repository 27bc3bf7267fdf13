// What rows cannot say of green contexts (session/green-contexts.h). Rows of vgpu/api/cuda.table name these functions.
#pragma once

#include "intercept/session/entry.h"

namespace vgpu::client {

// The contexts of a stream, the green one null if it is of none; null where the program does not ask.
CUresult contextsOfStream(CUstream stream, CUcontext* context, CUgreenCtx* green);
// Runs `body` with the context of a green one.
template <typename Body>
CUresult withContextOf(CUgreenCtx green, Body&& body) {
  CUcontext context = nullptr;
  if (CUresult bad = cuCtxFromGreenCtx(&context, green)) return bad;
  return body(context);
}

}  // namespace vgpu::client
