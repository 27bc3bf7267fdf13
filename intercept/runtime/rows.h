// How a runtime function is written: as a row.
//
//   RUNTIME(cudaFree, (void* memory), cuMemFree(toDevice(memory)))
//
// defines the C function cudaFree. It ensures that the driver works and that the thread has a context, evaluates the expression (a CUresult
// or a cudaError_t), records a failure as the thread's last error and returns it. <cuda_runtime_api.h> declares the same C function, so a
// row with another signature does not compile.
//
// The variants say what must hold before the expression is evaluated:
//   RUNTIME          the driver is initialised and a context is current
//   RUNTIME_DEVICE   the driver is initialised; no context is made
//   RUNTIME_LOCAL    nothing: the result needs no driver
//   RUNTIME_STREAM   as RUNTIME, and both flavours of a function whose null stream is the default stream: the plain name
//                    for the legacy default stream and name_ptsz for the per-thread one. `on(stream)` in the expression
//                    is the stream that the caller meant
//   RUNTIME_ENTRIES  both flavours, as RUNTIME_DEVICE: no context is made
//   RUNTIME_SYNC     as RUNTIME_STREAM, for functions without a stream argument (name_ptds); `on` is the flavour
#pragma once
#pragma GCC visibility push(default)
#include <cuda_runtime_api.h>
#pragma GCC visibility pop

#include <exception>
#include <new>

#include "intercept/runtime/answer.h"
#include "intercept/runtime/last-error.h"
#include "intercept/runtime/process.h"

namespace vgpu::runtime {

struct LegacyDefaultStream {
  static constexpr bool perThread = false;
  CUstream operator()(cudaStream_t stream) const { return stream; }
};

struct PerThreadDefaultStream {
  static constexpr bool perThread = true;
  CUstream operator()(cudaStream_t stream) const { return stream == nullptr ? CU_STREAM_PER_THREAD : stream; }
};

/// Our own exceptions end here; the cancellation of a thread unwinds through.
template <class Ready, class Body>
inline cudaError_t enter(Ready isReady, Body body) try {
  if (cudaError_t error = isReady(); error != cudaSuccess) [[unlikely]]
    return remember(error);
  return remember(answer(body()));
} catch (const std::bad_alloc&) {
  return remember(cudaErrorMemoryAllocation);
} catch (const std::exception&) {
  return remember(cudaErrorUnknown);
}

/// For RUNTIME_LOCAL: such a function also works after CUDA has ended in the process, and in a forked child.
inline cudaError_t readyForNothing() { return cudaSuccess; }

}  // namespace vgpu::runtime

#define VGPU_RUNTIME_ROW(name, parameters, isReady, ...)                              \
  extern "C" cudaError_t name parameters {                                            \
    return vgpu::runtime::enter(vgpu::runtime::isReady, [&] { return __VA_ARGS__; }); \
  }
#define VGPU_RUNTIME_FLAVOURS(name, suffix, parameters, isReady, ...)                                 \
  extern "C" __attribute__((visibility("default"))) decltype(name) name##suffix;             \
  extern "C" cudaError_t name parameters {                                                   \
    [[maybe_unused]] constexpr vgpu::runtime::LegacyDefaultStream on;                        \
    return vgpu::runtime::enter(vgpu::runtime::isReady, [&] { return __VA_ARGS__; });        \
  }                                                                                          \
  extern "C" cudaError_t name##suffix parameters {                                           \
    [[maybe_unused]] constexpr vgpu::runtime::PerThreadDefaultStream on;                     \
    return vgpu::runtime::enter(vgpu::runtime::isReady, [&] { return __VA_ARGS__; });        \
  }

#define RUNTIME(name, parameters, ...) VGPU_RUNTIME_ROW(name, parameters, readyInContext, __VA_ARGS__)
#define RUNTIME_DEVICE(name, parameters, ...) VGPU_RUNTIME_ROW(name, parameters, ready, __VA_ARGS__)
#define RUNTIME_LOCAL(name, parameters, ...) VGPU_RUNTIME_ROW(name, parameters, readyForNothing, __VA_ARGS__)
#define RUNTIME_STREAM(name, parameters, ...) VGPU_RUNTIME_FLAVOURS(name, _ptsz, parameters, readyInContext, __VA_ARGS__)
#define RUNTIME_ENTRIES(name, parameters, ...) VGPU_RUNTIME_FLAVOURS(name, _ptsz, parameters, ready, __VA_ARGS__)
#define RUNTIME_SYNC(name, parameters, ...) VGPU_RUNTIME_FLAVOURS(name, _ptds, parameters, readyInContext, __VA_ARGS__)
