// Where our own failures become CUDA's answers: at the C entry, and on the threads of ours that work for a call. CUDA's
// answers pass through verbatim, and so does what is no failure: a thread that is cancelled unwinds (cancellation.h).
#pragma once

#include <cuda.h>
#include <kj/exception.h>

#include <exception>
#include <new>

namespace vgpu::client {

// Says on stderr what went wrong on our side and gives the code that stands for it: no device where the session could
// not be opened, else unknown.
CUresult reportFailure(const char* text) noexcept;

// `body`'s answer; CUDA_ERROR_OUT_OF_MEMORY where the program's own memory is not enough for the call.
template <typename Body>
CUresult answerOf(Body&& body) try {
  return body();
} catch (const kj::Exception& failure) {
  return reportFailure(failure.getDescription().cStr());
} catch (const std::bad_alloc&) {
  return CUDA_ERROR_OUT_OF_MEMORY;
} catch (const std::exception& failure) {
  return reportFailure(failure.what());
}

}  // namespace vgpu::client
