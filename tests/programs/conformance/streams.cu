// Streams, events, host functions, stream attributes and memory operations.
#include "conformance.h"

__global__ void nothing() {}

SECTION(streams) {
  cudaStream_t stream = nullptr;
  SAY(cudaStreamCreate(nullptr));
  SAY(cudaStreamCreateWithFlags(&stream, 2));
  int least = 7, greatest = 7;
  SAY(cudaDeviceGetStreamPriorityRange(&least, &greatest));
  VALUE(least);
  VALUE(greatest);
  for (int wanted : {least + 5, greatest - 5, greatest}) {
    SAY(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, wanted));
    int priority = 77;
    SAY(cudaStreamGetPriority(stream, &priority));
    VALUE(priority);
  }
  unsigned flags = 77;
  SAY(cudaStreamGetFlags(stream, &flags));
  VALUE(flags);
  SAY(cudaStreamGetFlags(nullptr, &flags));
  VALUE(flags);
  SAY(cudaStreamGetFlags(cudaStreamPerThread, &flags));
  VALUE(flags);
  int device = 9;
  SAY(cudaStreamGetDevice(stream, &device));
  VALUE(device);
  unsigned long long one = 0, same = 0, other = 0;
  SAY(cudaStreamGetId(stream, &one));
  SAY(cudaStreamGetId(stream, &same));
  SAY(cudaStreamGetId(nullptr, &other));
  VALUE(one == same);
  VALUE(one == other);
  SAY(cudaStreamQuery(stream));
  SAY(cudaStreamSynchronize(stream));
  SAY(cudaStreamDestroy(stream));
  SAY(cudaStreamDestroy(nullptr));
  SAY(cudaStreamDestroy(cudaStreamLegacy));
  SAY(cudaStreamQuery(nullptr));
}

SECTION(events) {
  cudaEvent_t timed = nullptr, untimed = nullptr, fresh = nullptr;
  float milliseconds = -1;
  SAY(cudaEventCreate(nullptr));
  SAY(cudaEventCreateWithFlags(&timed, 64));
  SAY(cudaEventCreateWithFlags(&timed, cudaEventInterprocess));
  SAY(cudaEventCreate(&timed));
  SAY(cudaEventCreate(&fresh));
  SAY(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming | cudaEventBlockingSync));
  SAY(cudaEventQuery(timed));
  SAY(cudaEventSynchronize(timed));
  SAY(cudaEventElapsedTime(&milliseconds, timed, fresh));
  SAY(cudaEventRecord(timed, nullptr));
  SAY(cudaEventSynchronize(timed));
  SAY(cudaEventQuery(timed));
  SAY(cudaEventElapsedTime(&milliseconds, timed, timed));
  VALUE(milliseconds);
  SAY(cudaEventElapsedTime(&milliseconds, timed, fresh));
  SAY(cudaEventElapsedTime(nullptr, timed, timed));
  SAY(cudaEventRecord(untimed, nullptr));
  SAY(cudaEventSynchronize(untimed));
  SAY(cudaEventElapsedTime(&milliseconds, timed, untimed));
  SAY(cudaEventRecordWithFlags(timed, nullptr, 9));
  SAY(cudaEventRecord(nullptr, nullptr));
  SAY(cudaEventQuery(nullptr));
  SAY(cudaEventSynchronize(nullptr));
  SAY(cudaEventElapsedTime(&milliseconds, nullptr, timed));
  SAY(cudaStreamWaitEvent(nullptr, nullptr, 0));
  SAY(cudaStreamWaitEvent(nullptr, timed, 5));
  SAY(cudaStreamWaitEvent(nullptr, fresh, 0));
  SAY(cudaEventDestroy(nullptr));
  SAY(cudaEventDestroy(timed));
}

static int called;
SECTION(hostFunctions) {
  auto count = [](void*) { ++called; };
  SAY(cudaLaunchHostFunc(nullptr, nullptr, nullptr));
  SAY(cudaLaunchHostFunc(nullptr, count, nullptr));
  SAY(cudaStreamSynchronize(nullptr));
  VALUE(called);
  SAY(cudaStreamAddCallback(nullptr, nullptr, nullptr, 0));
  SAY(cudaStreamAddCallback(nullptr, [](cudaStream_t, cudaError_t, void*) {}, nullptr, 1));
  // Calls that are forbidden in a host function.
  CHECK(cudaLaunchHostFunc(nullptr, [](void*) {
    void* memory = nullptr;
    SAY(cudaMalloc(&memory, 16));
    SAY(cudaStreamSynchronize(nullptr));
    nothing<<<1, 1>>>();
    SAY(cudaGetLastError());
  }, nullptr));
  SAY(cudaStreamSynchronize(nullptr));
}

SECTION(attributes) {
  cudaStream_t one, other;
  CHECK(cudaStreamCreate(&one));
  CHECK(cudaStreamCreate(&other));
  cudaStreamAttrValue value{}, got{};
  SAY(cudaStreamGetAttribute(one, cudaStreamAttributeSynchronizationPolicy, &got));
  VALUE(got.syncPolicy);
  value.syncPolicy = cudaSyncPolicyBlockingSync;
  SAY(cudaStreamSetAttribute(one, cudaStreamAttributeSynchronizationPolicy, &value));
  SAY(cudaStreamGetAttribute(one, cudaStreamAttributeSynchronizationPolicy, &got));
  VALUE(got.syncPolicy);
  SAY(cudaStreamCopyAttributes(other, one));
  SAY(cudaStreamGetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &got));
  VALUE(got.syncPolicy);
  SAY(cudaStreamGetAttribute(one, cudaStreamAttributePriority, &got));
  VALUE(got.priority);
  SAY(cudaStreamGetAttribute(one, cudaStreamAttributeAccessPolicyWindow, &got));
  VALUE(got.accessPolicyWindow.num_bytes);
  SAY(cudaStreamGetAttribute(one, static_cast<cudaStreamAttrID>(77), &got));
  SAY(cudaStreamSetAttribute(one, static_cast<cudaStreamAttrID>(77), &value));
}

SECTION(memoryOperations) {
  CUdeviceptr words = 0;
  CHECK(cudaFree(nullptr));
  CALL(cuMemAlloc, &words, 64);
  CALL(cuMemsetD32, words, 0, 16);
  SAYCU(cuStreamWriteValue32, nullptr, words, 5, 0);
  SAYCU(cuStreamWriteValue32, nullptr, words + 2, 5, 0);
  SAYCU(cuStreamWriteValue64, nullptr, words + 4, 5, 0);
  SAYCU(cuStreamWriteValue32, nullptr, 0, 5, 0);
  SAYCU(cuStreamWriteValue32, nullptr, words, 5, 77);
  SAYCU(cuStreamWaitValue32, nullptr, words, 5, CU_STREAM_WAIT_VALUE_GEQ);
  SAYCU(cuStreamWaitValue32, nullptr, words, 5, 0x80);
  SAYCU(cuStreamWaitValue64, nullptr, words + 4, 0, CU_STREAM_WAIT_VALUE_GEQ);
  CUstreamBatchMemOpParams operations[2]{};
  operations[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, words + 8, {9}, 0, 0};
  operations[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, words + 8, {9}, CU_STREAM_WAIT_VALUE_EQ, 0};
  SAYCU(cuStreamBatchMemOp, nullptr, 2, operations, 0);
  SAYCU(cuStreamBatchMemOp, nullptr, 0, operations, 0);
  SAYCU(cuStreamBatchMemOp, nullptr, 2, operations, 5);
  operations[0].operation = static_cast<CUstreamBatchMemOpType>(77);
  SAYCU(cuStreamBatchMemOp, nullptr, 2, operations, 0);
  SAYCU(cuStreamSynchronize, nullptr);
  unsigned got[3]{};
  CALL(cuMemcpyDtoH, got, words, sizeof got);
  VALUE(got[0]);
  VALUE(got[2]);
}
