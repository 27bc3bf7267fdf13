// What rows cannot say of green contexts (session/green-contexts.h). Rows of vgpu/api/cuda.table name these functions.
#pragma once

#include "intercept/session/entry.h"

namespace vgpu::client {

CUresult greenIdentity(CUgreenCtx green, unsigned long long* id);
CUresult contextsOfStream(CUstream stream, CUcontext* context, CUgreenCtx* green);
CUresult greenOfStream(CUstream stream, CUgreenCtx* green);
CUresult recordGreen(CUgreenCtx green, CUevent event);
CUresult delayGreen(CUgreenCtx green, CUevent event);

}  // namespace vgpu::client
