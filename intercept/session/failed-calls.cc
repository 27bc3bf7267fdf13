#include "intercept/session/failed-calls.h"

#include <cctype>
#include <exception>
#include <string>
#include <utility>

#include "intercept/session/call.h"

namespace vgpu::client {

// The build takes the names from cuda.h.
const char* nameOfError(CUresult error) {
  switch (error) {
#define ERROR(name) \
  case name: return #name;
#include "cuda-errors.inc"
#undef ERROR
    default: return nullptr;
  }
}

// May also fetch lines that another thread's call caused: the lines belong to the worker process, not to a call.
void FailedCalls::bring(Thread& thread) {
  Session& session = thread.session;
  if (session.lost.load(std::memory_order_relaxed) || thread.runsHostFunctions || session.fault(thread.device()) != CUDA_SUCCESS) return;
  Call<api::Cuda::LogTakeParams> frame(thread, api::Method::logTake);
  if (frame.call() != CUDA_SUCCESS) return;
  const std::string text = frame.results<api::Cuda::LogTakeResults>().getText().cStr();
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    if (end > at) log.add(text.substr(at, end - at));
  }
}

CUresult FailedCalls::read(Thread& thread, CUlogIterator* from, const CallLog::Reader& to) {
  bring(thread);
  return log.read(from, to);
}

void FailedCalls::add(Thread& thread, const char* entry, CUresult result) {
  if (log.hasListeners()) bring(thread);
  log.add(CallLog::failure(entry, result, nameOfError(result)));
}

// CUDA_ERROR_NOT_READY is no failure. A listener may itself make calls that fail: those are not noted.
void noteFailedCall(const char* entry, CUresult result) noexcept try {
  static thread_local constinit bool isNoting = false;
  if (result == CUDA_ERROR_NOT_READY || entry[0] != 'c' || entry[1] != 'u' || std::isupper(entry[2]) == 0 || isNoting) return;
  Session* session = Session::find();
  if (session == nullptr) return;
  isNoting = true;
  KJ_DEFER(isNoting = false);
  session->failedCalls.add(Thread::current(*session), entry, result);
} catch (const std::exception&) {
  // The failure is not logged then.
} catch (const kj::Exception&) {
}

}  // namespace vgpu::client
