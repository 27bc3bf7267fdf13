// The launch interface that preceded cuLaunchKernel: block, shared memory and parameters are set one by one, and the function's next
// cuLaunch uses them.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "intercept/driver/shared.h"

namespace vgpu::client {

// Runs `body` with the settings of a live function. As natively, threads must not set the same function's concurrently.
template <typename Body>
CUresult onNextLaunch(CUfunction function, Body&& body) {
  return enter([&](Thread& thread) -> CUresult {
    auto* known = thread.session.handles.find<api::Kind::FUNCTION>(toWire(function));
    if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    auto& next = known->layout->next;
    if (next == nullptr) next = std::make_unique<NextLaunch>();
    return body(*next);
  });
}

template <typename Value>
CUresult setNext(CUfunction function, Value NextLaunch::*member, const std::type_identity_t<Value>& value) {
  return onNextLaunch(function, [&](NextLaunch& next) { return next.*member = value, CUDA_SUCCESS; });
}

inline CUresult setParameter(CUfunction function, int offset, const void* value, unsigned bytes) {
  if (value == nullptr || offset < 0 || bytes > NextLaunch::mostParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  const size_t begin = static_cast<size_t>(offset), end = begin + bytes;
  if (end > NextLaunch::mostParameterBytes) return CUDA_ERROR_INVALID_VALUE;
  return onNextLaunch(function, [&](NextLaunch& next) {
    if (next.parameters.size() < end) next.parameters.resize(end);
    std::memcpy(next.parameters.data() + begin, value, bytes);
    next.parameterBytes = std::max(next.parameterBytes, static_cast<unsigned>(end));
    return CUDA_SUCCESS;
  });
}

inline CUresult launchNext(CUfunction function, int width, int height, CUstream stream) {
  NextLaunch now;
  if (width <= 0 || height <= 0) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult bad = onNextLaunch(function, [&](NextLaunch& next) { return now = next, CUDA_SUCCESS; })) return bad;
  size_t bytes = now.parameterBytes;
  now.parameters.resize(bytes);
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, now.parameters.data(), CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  LaunchShape shape{static_cast<unsigned>(width), static_cast<unsigned>(height), 1, now.block[0], now.block[1], now.block[2], now.sharedBytes};
  return launch(function, shape, stream, nullptr, bytes == 0 ? nullptr : extra);
}

}  // namespace vgpu::client
