#include "stub/gpu/device-progress.h"

#include <new>

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

namespace {

constexpr uint64_t wordMemoryBytes = 4096;  // what a driver registers is whole pages

}  // namespace

CUresult DeviceProgress::start() {
  memory = Mapping(MemoryFile::create("vgpu-progress", wordMemoryBytes));
  word = new (memory.data()) std::atomic<uint64_t>(fences);
  if (CUresult error = driver.cuMemHostRegister_v2(memory.data(), memory.bytes(), CU_MEMHOSTREGISTER_DEVICEMAP)) return error;
  if (CUresult error = driver.cuMemHostGetDevicePointer_v2(&wordOnGpu, memory.data(), 0)) return error;
  for (CUstream* stream : {&own, &idle})
    if (CUresult error = driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0)) return error;
  return driver.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING);
}

DeviceProgress::~DeviceProgress() {
  if (joined != nullptr) driver.cuEventDestroy_v2(joined);
  for (CUstream stream : {own, idle})
    if (stream != nullptr) driver.cuStreamDestroy_v2(stream);
  if (wordOnGpu != 0) driver.cuMemHostUnregister(memory.data());
}

void DeviceProgress::note(uint64_t stream) {
  touched.insert(stream);
  lastUsed = stream;
}

CUresult DeviceProgress::joinStream(CUstream stream) {
  if (CUresult state = driver.cuStreamQuery(stream); state != CUDA_ERROR_NOT_READY) return state;
  if (CUresult error = driver.cuEventRecord(joined, stream)) return error;
  isFenceDue = true;
  return driver.cuStreamWaitEvent(own, joined, 0);  // for this record: the event may be recorded again meanwhile
}

CUresult DeviceProgress::joinLegacy() {
  if (!touched.contains(0)) return CUDA_SUCCESS;
  if (CUresult error = joinStream(nullptr)) return error;
  touched.erase(0);
  if (lastUsed == 0) lastUsed = none;
  return CUDA_SUCCESS;
}

CUresult DeviceProgress::joinDestroyed(uint64_t stream) {
  if (touched.erase(stream) == 0) return CUDA_SUCCESS;
  if (lastUsed == stream) lastUsed = none;
  return joinStream(fromWire<CUstream>(handles.get(api::Kind::STREAM, stream)));
}

bool DeviceProgress::isDone() {
  if (isFenceDue || !hasPassed(fences)) return false;
  for (uint64_t stream : touched)
    if (driver.cuStreamQuery(fromWire<CUstream>(handles.getOrNull(api::Kind::STREAM, stream))) == CUDA_ERROR_NOT_READY)
      return false;
  touched.clear();
  lastUsed = none;
  return true;
}

CUresult DeviceProgress::fence(uint64_t& number) {
  if (CUresult error = joinLegacy()) return error;
  for (uint64_t stream : touched)
    if (CUresult error = joinStream(fromWire<CUstream>(handles.get(api::Kind::STREAM, stream)))) return error;
  touched.clear();
  lastUsed = none;
  if (isFenceDue) {
    if (CUresult error = driver.cuStreamWriteValue64_v2(own, wordOnGpu, fences + 1, CU_STREAM_WRITE_VALUE_DEFAULT)) return error;
    ++fences;
    isFenceDue = false;
  }
  number = fences;
  return CUDA_SUCCESS;
}

CUresult DeviceProgress::signal(CUdeviceptr completionWord, uint64_t value) {
  CUstream stream = own;
  // One stream that has all that is outstanding needs no other.
  if (touched.size() == 1 && !isFenceDue && hasPassed(fences)) {
    stream = fromWire<CUstream>(handles.getOrNull(api::Kind::STREAM, *touched.begin()));
  } else {
    uint64_t number;
    if (CUresult error = fence(number)) return error;
  }
  return driver.cuStreamWriteValue64_v2(stream, completionWord, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

}  // namespace vgpu::stub
