#include "stub/gpu/device-progress.h"

#include <chrono>
#include <new>
#include <utility>

#include "vgpu/api/wire-value.h"

namespace vgpu::stub {

namespace {

constexpr uint64_t wordMemoryBytes = 4096;  // a driver registers whole pages

// How long a stream may still be reported busy after its last write has been seen: in fact some microseconds.
constexpr auto busyMoment = std::chrono::microseconds(100);

}  // namespace

CUresult DeviceProgress::start() {
  memory = Mapping(MemoryFile::create("vgpu-progress", wordMemoryBytes));
  word = new (memory.data()) std::atomic<uint64_t>(fences);
  if (CUresult error = driver.cuMemHostRegister_v2(memory.data(), memory.bytes(), CU_MEMHOSTREGISTER_DEVICEMAP)) return error;
  if (CUresult error = driver.cuMemHostGetDevicePointer_v2(&wordOnGpu, memory.data(), 0)) return error;
  for (CUstream* stream : {&own, &idle})
    if (CUresult error = driver.cuStreamCreateWithPriority(stream, CU_STREAM_NON_BLOCKING, 0)) return error;
  if (CUresult error = driver.cuStreamCreateWithPriority(&behindLegacy, CU_STREAM_DEFAULT, 0)) return error;
  return driver.cuEventCreate(&joined, CU_EVENT_DISABLE_TIMING);
}

DeviceProgress::~DeviceProgress() {
  if (joined != nullptr) driver.cuEventDestroy_v2(joined);
  for (CUstream stream : {own, idle, apart, behindLegacy})
    if (stream != nullptr) driver.cuStreamDestroy_v2(stream);
  if (wordOnGpu != 0) driver.cuMemHostUnregister(memory.data());
}

void DeviceProgress::note(uint64_t stream) {
  touched.insert(stream);
  if (stream == 0) {
    for (uint64_t each : std::exchange(sinceLegacy, {})) mark(each);
  } else {
    sinceLegacy.insert(stream);
  }
  lastUsed = stream;
}

CUstream DeviceProgress::realOf(uint64_t stream) const { return fromWire<CUstream>(handles.getOrNull(api::Kind::STREAM, stream)); }

// If the driver cannot say how the stream was created, it counts as blocking.
bool DeviceProgress::isBlocking(CUstream stream) const {
  unsigned flags = 0;
  return driver.cuStreamGetFlags(stream, &flags) != CUDA_SUCCESS || (flags & CU_STREAM_NON_BLOCKING) == 0;
}

CUresult DeviceProgress::write(CUstream stream, const Completion& completion) {
  return driver.cuStreamWriteValue64_v2(stream, completion.onGpu, completion.value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

// Called for a stream that has had work since the legacy stream's last work, so its event is not ordered after the legacy stream. If no
// event can be recorded, the stream stays in sinceLegacy, and waits for it are written into the stream.
void DeviceProgress::mark(uint64_t stream) {
  CUstream real = realOf(stream);
  if (!isBlocking(real)) return;
  Mark& mark = marks[stream];
  CUevent made = nullptr;
  const bool isFree = mark != nullptr && mark.use_count() == 1;  // otherwise a wait still needs it
  if (!isFree && driver.cuEventCreate(&made, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS)
    mark = Mark(made, [&driver = driver](CUevent event) { driver.cuEventDestroy_v2(event); });
  if ((isFree || made != nullptr) && driver.cuEventRecord(mark.get(), real) == CUDA_SUCCESS) return;
  sinceLegacy.insert(stream);
}

// Makes one of our streams wait for the present work of `stream`, if any of it is left.
CUresult DeviceProgress::delay(CUstream waiting, CUstream stream) {
  if (CUresult state = driver.cuStreamQuery(stream); state != CUDA_ERROR_NOT_READY) return state;
  if (CUresult error = driver.cuEventRecord(joined, stream == nullptr ? behindLegacy : stream)) return error;
  if (waiting == own) isFenceDue = true;
  return driver.cuStreamWaitEvent(waiting, joined, 0);  // waits for this record, even if the event is recorded again later
}

CUresult DeviceProgress::joinDestroyed(uint64_t stream) {
  CUstream real = realOf(stream);
  marks.erase(stream);
  if (lastUsed == stream) lastUsed = none;
  if (sinceLegacy.erase(stream) != 0 && isBlocking(real))
    if (CUresult error = delay(behindLegacy, real)) return error;
  return touched.erase(stream) != 0 ? delay(own, real) : CUDA_SUCCESS;
}

CUresult DeviceProgress::signalStream(uint64_t stream, const Completion& completion) {
  if (stream == 0) return signalLegacy(completion);
  CUstream real = realOf(stream);
  if (sinceLegacy.contains(stream) || !isBlocking(real)) return write(real, completion);
  auto found = marks.find(stream);  // without a mark the stream has had no work
  CUresult state = found == marks.end() ? CUDA_SUCCESS : driver.cuEventQuery(found->second.get());
  if (state == CUDA_SUCCESS) completion.word->store(completion.value, std::memory_order_release);  // the GPU's work happens before this
                                                                                                   // store
  if (state != CUDA_ERROR_NOT_READY) return state;
  asked.push_back({found->second, completion});
  return CUDA_SUCCESS;
}

// Writes in the legacy stream itself, if no other stream's work would come between its work and the write.
CUresult DeviceProgress::signalLegacy(const Completion& completion) {
  if (sinceLegacy.empty()) return write(nullptr, completion);
  for (uint64_t stream : sinceLegacy)
    if (CUstream real = realOf(stream); isBlocking(real))
      if (CUresult error = delay(behindLegacy, real)) return error;
  return write(behindLegacy, completion);
}

void DeviceProgress::ask() {
  std::erase_if(asked, [&](const Asked& each) {
    if (fault() != CUDA_SUCCESS) return true;  // its waiter gets the fault
    if (driver.cuEventQuery(each.mark.get()) != CUDA_SUCCESS) return false;
    each.completion.word->store(each.completion.value, std::memory_order_release);
    return true;
  });
}

bool DeviceProgress::isHeld(uint64_t stream) const {
  CUstream real = realOf(stream);
  const bool isBehindLegacy = real != nullptr && isBlocking(real);
  const auto until = std::chrono::steady_clock::now() + busyMoment;
  auto isBusy = [&](CUstream each) { return driver.cuStreamQuery(each) == CUDA_ERROR_NOT_READY; };
  while (isBusy(real) || (isBehindLegacy && isBusy(nullptr)))
    if (std::chrono::steady_clock::now() > until) return true;
  return false;
}

// Created at the first call: streams share a few hardware connections (docs/ring.md).
CUstream DeviceProgress::apartStream() {
  if (apart == nullptr && driver.cuStreamCreateWithPriority(&apart, CU_STREAM_NON_BLOCKING, 0) != CUDA_SUCCESS) return nullptr;
  return apart;
}

bool DeviceProgress::isDone() {
  if (isFenceDue || !hasPassed(fences)) return false;
  for (uint64_t stream : touched)
    if (driver.cuStreamQuery(realOf(stream)) == CUDA_ERROR_NOT_READY) return false;
  touched.clear();
  lastUsed = none;
  return true;
}

CUresult DeviceProgress::fence(uint64_t& number) {
  for (uint64_t stream : touched)
    if (CUresult error = delay(own, realOf(stream))) return error;
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
  // If one stream has all outstanding work, the write goes there, without a fence.
  if (touched.size() == 1 && !isFenceDue && hasPassed(fences)) {
    stream = realOf(*touched.begin());
  } else {
    uint64_t number;
    if (CUresult error = fence(number)) return error;
  }
  return driver.cuStreamWriteValue64_v2(stream, completionWord, value, CU_STREAM_WRITE_VALUE_DEFAULT);
}

}  // namespace vgpu::stub
