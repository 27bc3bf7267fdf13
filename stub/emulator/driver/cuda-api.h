// The driver API's own declarations, and the three wrappers of entries.
//
// Every C entry is `return enter…([&](…) { … });`: only these turn an exception of the body into CUDA's result.
#pragma once

// The entries are the library's only exported symbols.
#pragma GCC visibility push(default)
#define __CUDA_API_VERSION_INTERNAL  // declares every version of every entry
#include <cuda.h>
#include <cudaProfiler.h>
#pragma GCC visibility pop

#include <exception>
#include <string>
#include <type_traits>
#include <utility>

namespace vgpu::emulator::api {

class Context;
class Driver;

// A refused call: an exception with CUDA's result for the entry. `message` says why; it reaches cuLogs* and the JIT log.
struct Refusal {
  CUresult code;
  std::string message;
};
[[noreturn]] void refuse(CUresult code, std::string message = {});
// Refuses with `code` unless `condition` holds.
inline void require(bool condition, CUresult code = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) refuse(code);
}

// CUDA's result for an exception: a Refusal's own code, out of memory, or CUDA_ERROR_UNKNOWN with a line on stderr.
CUresult answerFor(std::exception_ptr) noexcept;

// The process's driver; refuses with CUDA_ERROR_NOT_INITIALIZED before cuInit.
Driver& initializedDriver();
// The calling thread's context; refuses if there is none, if it is destroyed, or with its sticky error.
Context& currentContext();

template <class Body, class... Arguments>
CUresult answer(Body&& body, Arguments&&... arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<Body, Arguments...>>) {
    body(std::forward<Arguments>(arguments)...);
    return CUDA_SUCCESS;
  } else {
    return body(std::forward<Arguments>(arguments)...);
  }
}

// Adds lines to the log of failed calls (log.cc): the reason, if `message` has one, and the entry's result.
void logFailure(const char* entry, CUresult code, const std::string& message) noexcept;

// For entries that work before cuInit. `entry`: the function that calls this, for the log.
template <class Body>
CUresult enterAlways(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  CUresult code;
  std::string message;
  try {
    code = answer(body);
  } catch (const Refusal& refusal) {
    code = refusal.code;
    message = refusal.message;
  } catch (...) {
    code = answerFor(std::current_exception());
  }
  if (code != CUDA_SUCCESS) [[unlikely]]
    logFailure(entry, code, message);
  return code;
}

// For entries that need the driver but no context; the body takes Driver&.
template <class Body>
CUresult enterDriver(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return enterAlways([&] { return answer(body, initializedDriver()); }, entry);
}

// For entries that work on the current context; the body takes Context&.
template <class Body>
CUresult enterContext(Body&& body, const char* entry = __builtin_FUNCTION()) noexcept {
  return enterAlways([&] { return answer(body, currentContext()); }, entry);
}

}  // namespace vgpu::emulator::api
