// Code libraries (cuLibrary*) and their kernels: an image that belongs to no context.
//
// The worker knows only modules. A library is loaded as a module of a context when something of it is first used there, by any thread; a
// module that has ended with its context is loaded again at the next use. `loading` is held meanwhile, over calls, so that two threads do
// not load it twice. Stays in the program's process over a suspend; the modules are restored by their recipes.
#pragma once

#include <cuda.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "intercept/session/modules/jit-options.h"
#include "vgpu/wire/arena.h"

namespace vgpu::client {

class Thread;

// Errors of code that cannot be translated: the driver still loads such a library, and reports the error when something of it is used.
constexpr bool isOfCode(CUresult error) {
  return error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

class CodeLibrary {
 public:
  // `handle`: the library's own. A preserved image stays at the program's address; any other is copied.
  CodeLibrary(uint64_t handle, std::span<const std::byte> image, bool isPreserved, JitOptions jit);

  // The module in that context, which is loaded if necessary. CUDA's result.
  CUresult moduleIn(Thread& thread, uint64_t context, uint64_t& module);
  // From now on the JIT's logs are not written to the program's buffers any more.
  void forgetPlaces() { jit.forgetPlaces(); }
  // The names of all kernels; loads the library into `context` if it is in none.
  CUresult listKernels(Thread& thread, uint64_t context, std::vector<std::string>& names);
  // The contexts of `device` into which it is loaded.
  std::vector<uint64_t> contextsOn(Thread& thread, unsigned device);
  // Unloads it everywhere.
  CUresult unload(Thread& thread);

 private:
  const uint64_t handle;
  const std::vector<std::byte> copy;
  const std::span<const std::byte> image;
  JitOptions jit;
  std::mutex loading;
  std::map<uint64_t, uint64_t> modules;  // by context; one that is not live has ended with its context
  std::optional<std::vector<std::string>> names;
};

// A kernel belongs to no context; launches and queries use its function in a context.
class LibraryKernel {
 public:
  LibraryKernel(uint64_t library, std::string name) : library(library), name(std::move(name)) {}

  const uint64_t library;
  const std::string name;

  // Its function in that context: lock-free if it is the one last used on that device. CUDA's result.
  CUresult functionIn(Thread& thread, uint64_t context, uint64_t& function);

  // Applies `set` to its functions on `device`, and to those that it gets there later. CUDA's result; after an error the remaining
  // functions are unchanged.
  using Setting = std::function<CUresult(Thread& thread, uint64_t function)>;
  CUresult setOn(Thread& thread, unsigned device, uint64_t key, Setting set);
  // Applies the settings of its device to a new function of the kernel that nobody uses yet. CUDA's result.
  CUresult applyTo(Thread& thread, uint64_t function);

 private:
  CUresult load(Thread& thread, uint64_t context, uint64_t& function);

  std::array<std::atomic<uint64_t>, maxDevices> recent{};  // the function last used on each device
  std::recursive_mutex setting;  // held while functions are set; before `loading`. Recursive: setting may make functions
  std::map<std::pair<unsigned, uint64_t>, Setting> settings;  // by device and key
};

// The context on `device` that a call without a context means: the current one, or the device's primary context.
uint64_t contextOn(Thread& thread, unsigned device);

// The function that a program's CUfunction means in `context`: itself, or the function of a library's kernel. CUDA's result.
CUresult resolveFunction(Thread& thread, uint64_t context, uint64_t& handle);

}  // namespace vgpu::client
