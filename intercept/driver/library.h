// Code libraries and their kernels: functions that rows of the table name.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <span>

#include "intercept/session/entry.h"
#include "intercept/session/modules/modules.h"

namespace vgpu::client {

// ---- images (module.cc)
// The bytes of an image, in any form that CUDA accepts.
CUresult readImage(const void* image, JitOptions& jit, std::span<const std::byte>& bytes);
// Runs `body` with a file's content as an image in memory, followed by a zero byte.
template <typename Body>
CUresult withFile(const char* path, Body&& body) {
  if (path == nullptr || *path == 0) return CUDA_ERROR_INVALID_VALUE;
  return answerOf([&]() -> CUresult {
    std::ifstream file(path, std::ios::binary);
    if (!file) return CUDA_ERROR_FILE_NOT_FOUND;
    if (std::filesystem::is_directory(path)) return CUDA_ERROR_OUT_OF_MEMORY;  // as the driver, which cannot map a directory
    std::vector<char> image{std::istreambuf_iterator<char>(file), {}};
    image.push_back(0);
    return body(image.data(), image.size() - 1);
  });
}

// Returns a variable of a live module to the program.
CUresult giveVariable(Thread& thread, uint64_t module, const char* name, CUdeviceptr* address, size_t* bytes);
// The same for a library's module in the current context, if the variable is managed or not, as `isManaged` says (library.cc).
CUresult giveLibraryVariable(CUlibrary library, const char* name, CUdeviceptr* address, size_t* bytes, bool isManaged);

// ---- libraries and kernels
template <typename Body>
CUresult withLibrary(CUlibrary library, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enterAny([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::LIBRARY>(toWire(library));
    return entry == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(thread, *entry->code);
  }, caller);
}
// Runs `body` with the library's module in the current context.
template <typename Body>
CUresult withModuleOf(CUlibrary library, Body&& body, const char* caller = __builtin_FUNCTION()) {
  return enter([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::LIBRARY>(toWire(library));
    if (entry == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    uint64_t module = 0;
    if (CUresult error = entry->code->moduleIn(thread, thread.owner(), module)) return error;
    return body(thread, module);
  }, caller);
}
template <typename Body>
CUresult withKernel(CUkernel kernel, Body&& body) {
  return enterAny([&](Thread& thread) -> CUresult {
    auto* entry = thread.session.handles.find<api::Kind::KERNEL>(toWire(kernel));
    return entry == nullptr ? CUDA_ERROR_INVALID_HANDLE : body(thread, *entry->kernel);
  });
}
// Runs `body` with the kernel's function on `device`, or on the current device.
template <typename Body>
CUresult withFunctionOn(CUkernel handle, Body&& body, std::optional<CUdevice> device = std::nullopt) {
  return withKernel(handle, [&](Thread& thread, LibraryKernel& kernel) -> CUresult {
    if (device && !thread.session.hasDevice(*device)) return CUDA_ERROR_INVALID_DEVICE;
    uint64_t function = 0, context = contextOn(thread, device ? static_cast<unsigned>(*device) : thread.device());
    if (CUresult error = kernel.functionIn(thread, context, function)) return error;
    return body(fromWire<CUfunction>(function));
  });
}

// Sets a property of the kernel's functions on a device, including functions loaded later. `key` identifies the property.
template <typename Set>
CUresult setOnDevice(CUkernel kernel, CUdevice device, uint64_t key, Set&& set) {
  return withKernel(kernel, [&](Thread& thread, LibraryKernel& known) -> CUresult {
    if (!thread.session.hasDevice(device)) return CUDA_ERROR_INVALID_DEVICE;
    return known.setOn(thread, static_cast<unsigned>(device), key, set);
  });
}

// Queries of a library (library.cc).
// Lists at most `most` kernels, or counts them; outputs may be null.
CUresult listKernels(CUkernel* kernels, unsigned most, unsigned* count, CUlibrary library);
CUresult giveKernel(CUkernel* kernel, CUlibrary library, const char* name);

}  // namespace vgpu::client
