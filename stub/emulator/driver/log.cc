// cuLogs*: the log of failed calls, and its callbacks.
#include <cctype>
#include <exception>

#include "stub/emulator/driver/cuda-api.h"
#include "vgpu/api/call-log.h"

namespace vgpu::emulator::api {

namespace {

// One for the process, like the driver. Never destroyed: the driver's threads may still log failures.
CallLog& callLog() {
  static auto& log = *new CallLog;
  return log;
}

}  // namespace

// If the caller is a function that several entries share, its name is not an entry's, and only the reason is logged.
void logFailure(const char* entry, CUresult code, const std::string& message) noexcept try {
  if (code == CUDA_ERROR_NOT_READY) return;
  if (!message.empty()) callLog().add(CallLog::lineOf(message));
  const char* name = nullptr;
  cuGetErrorName(code, &name);
  const bool isEntry = entry[0] == 'c' && entry[1] == 'u' && std::isupper(static_cast<unsigned char>(entry[2])) != 0;
  callLog().add(CallLog::failure(isEntry ? entry : "a call of the driver", code, name));
} catch (const std::exception&) {
  // The failure is then not logged.
}

}  // namespace vgpu::emulator::api

using namespace vgpu;
using namespace vgpu::emulator::api;

CUresult CUDAAPI cuLogsRegisterCallback(CUlogsCallback function, void* data, CUlogsCallbackHandle* added) {
  return enterAlways([&] { return function == nullptr ? CUDA_ERROR_INVALID_VALUE : callLog().listen(function, data, added, nullptr); });
}

CUresult CUDAAPI cuLogsUnregisterCallback(CUlogsCallbackHandle callback) {
  return enterAlways([&] { return callLog().listen(nullptr, nullptr, nullptr, callback); });
}

CUresult CUDAAPI cuLogsCurrent(CUlogIterator* end, unsigned flags) {
  return enterAlways([&] { return flags != 0 ? CUDA_ERROR_INVALID_VALUE : callLog().read(end, {.reads = false}); });
}

CUresult CUDAAPI cuLogsDumpToFile(CUlogIterator* from, const char* path, unsigned) {
  return enterAlways([&] { return callLog().read(from, {.path = path}); });
}

CUresult CUDAAPI cuLogsDumpToMemory(CUlogIterator* from, char* buffer, size_t* size, unsigned) {
  return enterAlways([&] {
    return size == nullptr ? CUDA_ERROR_INVALID_VALUE : callLog().read(from, {.buffer = buffer, .size = size});
  });
}
