// A context with attached references (cuCtxAttach) lives, with the objects made in it, until the last reference is detached, also over a
// pause.
#include "driver-entry.h"

int main() {
  CUcontext context = nullptr, same = nullptr, current = nullptr;
  CUdeviceptr memory = 0;
  unsigned value = 0;
  CALL(cuInit, 0);
  CALL(cuCtxCreate, &context, nullptr, 0, 0);
  CALL(cuCtxAttach, &same, 0);
  CALL(cuMemAlloc, &memory, 64);
  CALL(cuMemsetD32, memory, 17, 16);
  CALL(cuCtxDetach, context);
  pausePoint();
  CALL(cuMemcpyDtoH, &value, memory, sizeof value);
  CALL(cuCtxGetCurrent, &current);
  bool ok = EXPECT(same == context) & EXPECT(current == context) & EXPECT(value == 17);
  CALL(cuCtxDetach, context);
  CALL(cuCtxGetCurrent, &current);
  return ok & EXPECT(current == nullptr) & EXPECT(DRIVER(cuCtxDetach)(context) == CUDA_ERROR_INVALID_CONTEXT) ? 0 : 1;
}
