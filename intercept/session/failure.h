// Conversion of our own failures into CUDA's error codes: at the C entry, and on our own threads that work for a call. CUDA's results pass
// through unchanged, and so does the unwinding of a cancelled thread (cancellation.h).
#pragma once

#include <cuda.h>
#include <kj/exception.h>

#include <exception>
#include <new>
#include <stdexcept>

namespace vgpu::client {

// No session can be opened, because CUDA refuses the value of CUDA_VISIBLE_DEVICES with CUDA_ERROR_INVALID_DEVICE.
struct InvalidDevices : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Prints the failure to stderr and returns its code: CUDA_ERROR_NO_DEVICE if the session could not be opened, else CUDA_ERROR_UNKNOWN.
CUresult reportFailure(const char* text) noexcept;
CUresult reportFailure(const std::exception& failure) noexcept;

// `body`'s result; CUDA_ERROR_OUT_OF_MEMORY if the program's own memory is exhausted.
template <typename Body>
CUresult answerOf(Body&& body) try {
  return body();
} catch (const kj::Exception& failure) {
  return reportFailure(failure.getDescription().cStr());
} catch (const std::bad_alloc&) {
  return CUDA_ERROR_OUT_OF_MEMORY;
} catch (const std::exception& failure) {
  return reportFailure(failure);
}

}  // namespace vgpu::client
