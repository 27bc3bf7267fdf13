// Entries whose arguments are structures and arrays, each called by its exported name: their effects survive a suspend.
#include "exported-entry.h"

#include <cstring>

namespace {

bool setAttributes(CUstream stream) {
  CUstreamAttrValue policy{}, domains{};
  policy.syncPolicy = CU_SYNC_POLICY_YIELD;
  domains.memSyncDomainMap = {1, 0};
  bool ok = WORKS(cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy);
  ok &= WORKS(cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &domains);
  policy.syncPolicy = CU_SYNC_POLICY_BLOCKING_SYNC;
  ok &= WORKS(cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, nullptr);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute, stream, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &policy);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamSetAttribute, stream, static_cast<CUstreamAttrID>(999), &policy);
  auto gone = reinterpret_cast<CUstream>(0x0050000000000999);
  return ok && GIVES(CUDA_ERROR_INVALID_HANDLE, cuStreamSetAttribute, gone, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy);
}

bool hasAttributes(CUstream stream) {
  CUstreamAttrValue policy{}, domains{};
  bool ok = WORKS(cuStreamGetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, &policy);
  ok &= WORKS(cuStreamGetAttribute, stream, CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, &domains);
  ok &= EXPECT(policy.syncPolicy == CU_SYNC_POLICY_BLOCKING_SYNC);
  ok &= EXPECT(domains.memSyncDomainMap.default_ == 1 && domains.memSyncDomainMap.remote == 0);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamGetAttribute, stream, CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY, nullptr);
}

CUstreamBatchMemOpParams writes(CUdeviceptr address, uint64_t value, bool is64) {
  CUstreamBatchMemOpParams operation{};
  operation.writeValue.operation = is64 ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_WRITE_VALUE_32;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  return operation;
}

CUstreamBatchMemOpParams waits(CUdeviceptr address, cuuint32_t value) {
  CUstreamBatchMemOpParams operation{};
  operation.waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  operation.waitValue.address = address;
  operation.waitValue.value = value;
  operation.waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  return operation;
}

// One stream waits for the other in the middle of a batch.
bool runBatches(CUstream first, CUstream second, CUdeviceptr words) {
  CUstreamBatchMemOpParams waiting[] = {writes(words, 5, false), waits(words + 8, 6), writes(words + 16, uint64_t{7} << 40, true)};
  CUstreamBatchMemOpParams releasing[] = {waits(words, 5), writes(words + 8, 6, false)};
  bool ok = WORKS(cuStreamBatchMemOp_v2, first, 3, waiting, 0) && WORKS(cuStreamBatchMemOp, second, 2, releasing, 0);
  ok &= WORKS(cuStreamSynchronize, first) && WORKS(cuStreamSynchronize, second);
  CUstreamBatchMemOpParams foreign = writes(0x1000, 1, false), many[257] = {};
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2, first, 1, &foreign, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2, first, 257, many, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2, first, 1, nullptr, 0);
  return ok && GIVES(CUDA_ERROR_INVALID_VALUE, cuStreamBatchMemOp_v2, first, 1, waiting, 8);
}

bool haveWritten(CUdeviceptr words) {
  uint64_t seen[3]{};
  bool ok = WORKS(cuMemcpyDtoH_v2, seen, words, sizeof seen);
  return ok && EXPECT(seen[0] == 5) && EXPECT(seen[1] == 6) && EXPECT(seen[2] == uint64_t{7} << 40);
}

bool checkAtomics() {
  const CUatomicOperation operations[] = {CU_ATOMIC_OPERATION_INTEGER_ADD, CU_ATOMIC_OPERATION_CAS};
  const auto wrong = static_cast<CUatomicOperation>(77);
  unsigned capabilities[2] = {~0u, ~0u};
  int native = 0;
  bool ok = WORKS(cuDeviceGetHostAtomicCapabilities, capabilities, operations, 2, 0);
  ok &= WORKS(cuDeviceGetAttribute, &native, CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED, 0);
  for (unsigned each : capabilities) ok &= EXPECT(each < 128u) && EXPECT(native != 0 || each == 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities, capabilities, &wrong, 1, 0);
  ok &= GIVES(CUDA_ERROR_INVALID_VALUE, cuDeviceGetHostAtomicCapabilities, capabilities, nullptr, 2, 0);
  return ok && GIVES(CUDA_ERROR_INVALID_DEVICE, cuDeviceGetHostAtomicCapabilities, capabilities, operations, 2, 999);
}

}  // namespace

int main() {
  CHECK(cudaFree(nullptr));
  CUstream first = nullptr, second = nullptr, third = nullptr;
  CUdeviceptr words = 0;
  bool ok = WORKS(cuStreamCreate, &first, CU_STREAM_NON_BLOCKING) && WORKS(cuStreamCreate, &second, CU_STREAM_NON_BLOCKING) &&
            WORKS(cuStreamCreate, &third, 0) && WORKS(cuMemAlloc_v2, &words, 64) && WORKS(cuMemsetD8_v2, words, 0, 64) &&
            WORKS(cuStreamSynchronize, nullptr);  // which the non-blocking streams would not wait for
  ok = ok && setAttributes(first) && WORKS(cuStreamCopyAttributes, second, first) && runBatches(first, second, words) && checkAtomics();
  pausePoint();
  ok = ok && hasAttributes(first) && hasAttributes(second) && haveWritten(words);
  ok = ok && WORKS(cuStreamCopyAttributes, third, second) && hasAttributes(third);
  return verdict("driver-structures", ok);
}
