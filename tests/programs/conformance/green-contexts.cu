// Green contexts: a device's resources, splitting them, contexts on a part.
#include "conformance.h"

static CUdevResource ofDevice() {
  CUdevResource all{};
  CUdevice device = 0;
  if (DRIVER(cuDeviceGetDevResource)(device, &all, CU_DEV_RESOURCE_TYPE_SM) != CUDA_SUCCESS) std::printf("no resource\n");
  return all;
}

SECTION(resources) {
  CHECK(cudaFree(nullptr));
  CUdevResource all{}, other{};
  SAYCU(cuDeviceGetDevResource, 0, &all, CU_DEV_RESOURCE_TYPE_SM);
  VALUE(all.type);
  VALUE(all.sm.smCount > 0);
  SAYCU(cuDeviceGetDevResource, 0, nullptr, CU_DEV_RESOURCE_TYPE_SM);
  SAYCU(cuDeviceGetDevResource, 0, &other, CU_DEV_RESOURCE_TYPE_INVALID);
  SAYCU(cuDeviceGetDevResource, 0, &other, static_cast<CUdevResourceType>(77));
  SAYCU(cuDeviceGetDevResource, 99, &other, CU_DEV_RESOURCE_TYPE_SM);
  CUcontext primary = nullptr;
  SAYCU(cuCtxGetCurrent, &primary);
  SAYCU(cuCtxGetDevResource, primary, &other, CU_DEV_RESOURCE_TYPE_SM);
  VALUE(other.sm.smCount == all.sm.smCount);
  SAYCU(cuCtxGetDevResource, nullptr, &other, CU_DEV_RESOURCE_TYPE_SM);
  SAYCU(cuCtxGetDevResource, primary, nullptr, CU_DEV_RESOURCE_TYPE_SM);
}

SECTION(division) {
  CHECK(cudaFree(nullptr));
  CUdevResource all = ofDevice(), parts[2]{}, rest{}, empty{};
  unsigned count = 2;
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, &all, &rest, 0, 16);
  VALUE(count);
  VALUE(parts[0].sm.smCount);
  VALUE(parts[1].sm.smCount);
  VALUE(rest.sm.smCount == all.sm.smCount - 32);
  count = 1;
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, &all, nullptr, 0, 3);
  VALUE(parts[0].sm.smCount);
  count = 1;
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, &all, &rest, 0, 0);
  VALUE(parts[0].sm.smCount);
  count = 1;
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, &all, &rest, 0, 10000);
  VALUE(count);
  count = 0;
  SAYCU(cuDevSmResourceSplitByCount, nullptr, &count, &all, nullptr, 0, 16);
  VALUE(count > 1);
  count = 1;
  SAYCU(cuDevSmResourceSplitByCount, parts, nullptr, &all, &rest, 0, 16);
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, nullptr, &rest, 0, 16);
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, &empty, &rest, 0, 16);
  SAYCU(cuDevSmResourceSplitByCount, parts, &count, &all, &rest, 77, 16);
}

SECTION(descriptions) {
  CHECK(cudaFree(nullptr));
  CUdevResource all = ofDevice();
  CUdevResourceDesc description{};
  SAYCU(cuDevResourceGenerateDesc, &description, &all, 1);
}

// Each in its own process: the driver crashes for a null resource, and may for others.
SECTION(descriptionsOfNull) {
  CHECK(cudaFree(nullptr));
  CUdevResourceDesc description{};
  SAYCU(cuDevResourceGenerateDesc, &description, nullptr, 1);
}

SECTION(descriptionsIntoNull) {
  CHECK(cudaFree(nullptr));
  CUdevResource all = ofDevice();
  SAYCU(cuDevResourceGenerateDesc, nullptr, &all, 1);
}

SECTION(descriptionsOfNothing) {
  CHECK(cudaFree(nullptr));
  CUdevResource empty{};
  CUdevResourceDesc description{};
  SAYCU(cuDevResourceGenerateDesc, &description, &empty, 1);
}

__global__ void set(int* number) { *number = 42; }

SECTION(uses) {
  CHECK(cudaFree(nullptr));
  CUdevResource all = ofDevice(), part{}, found{};
  unsigned count = 1;
  CUdevResourceDesc description{};
  CUgreenCtx green = nullptr, none = nullptr;
  CUcontext context = nullptr, primary = nullptr;
  CUstream stream = nullptr, other = nullptr;
  SAYCU(cuCtxGetCurrent, &primary);
  SAYCU(cuDevSmResourceSplitByCount, &part, &count, &all, nullptr, 0, 16);
  SAYCU(cuDevResourceGenerateDesc, &description, &part, 1);
  SAYCU(cuGreenCtxCreate, &green, description, 0, 0);
  SAYCU(cuGreenCtxCreate, &green, nullptr, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  SAYCU(cuGreenCtxCreate, &green, description, 99, CU_GREEN_CTX_DEFAULT_STREAM);
  SAYCU(cuGreenCtxCreate, nullptr, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  SAYCU(cuGreenCtxCreate, &green, description, 0, CU_GREEN_CTX_DEFAULT_STREAM);
  SAYCU(cuGreenCtxGetDevResource, green, &found, CU_DEV_RESOURCE_TYPE_SM);
  VALUE(found.sm.smCount);
  SAYCU(cuGreenCtxGetDevResource, green, nullptr, CU_DEV_RESOURCE_TYPE_SM);
  SAYCU(cuCtxFromGreenCtx, &context, green);
  SAYCU(cuCtxFromGreenCtx, nullptr, green);
  VALUE(context == primary);
  SAYCU(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_DEFAULT, 0);
  SAYCU(cuGreenCtxStreamCreate, &stream, green, CU_STREAM_NON_BLOCKING, 0);
  SAYCU(cuGreenCtxStreamCreate, &other, nullptr, CU_STREAM_NON_BLOCKING, 0);
  SAYCU(cuStreamGetGreenCtx, stream, &none);
  VALUE(none == green);
  SAYCU(cuStreamGetGreenCtx, nullptr, &none);
  VALUE(none == nullptr);
  unsigned long long id = 0, idOfPrimary = 0;
  SAYCU(cuCtxGetId, context, &id);
  SAYCU(cuCtxGetId, primary, &idOfPrimary);
  VALUE(id != idOfPrimary);
  int *number = nullptr, value = 0;
  CHECK(cudaMalloc(&number, sizeof *number));
  set<<<1, 1, 0, stream>>>(number);
  SAY(cudaGetLastError());
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaMemcpy(&value, number, sizeof value, cudaMemcpyDeviceToHost));
  VALUE(value);
  CUevent event = nullptr;
  SAYCU(cuEventCreate, &event, CU_EVENT_DEFAULT);
  SAYCU(cuGreenCtxRecordEvent, green, event);
  SAYCU(cuGreenCtxWaitEvent, green, event);
  SAYCU(cuGreenCtxRecordEvent, green, nullptr);
  SAYCU(cuCtxSetCurrent, context);
  set<<<1, 1>>>(number);
  SAY(cudaGetLastError());
  SAY(cudaDeviceSynchronize());
  SAYCU(cuCtxSetCurrent, primary);
  SAYCU(cuStreamDestroy, stream);
  SAYCU(cuGreenCtxDestroy, green);
}
