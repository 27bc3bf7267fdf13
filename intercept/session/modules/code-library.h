// Libraries of code (cuLibrary*) and their kernels: an image that belongs to no context.
//
// The worker knows modules only. A library is loaded as a module of a context when something of it is first used there, by any
// thread; a module that has ended with its context is loaded again at the next use. `loading` is held meanwhile, so that two
// threads do not load it twice: calls are made under it. All of it stays in the program's process over a suspend; the modules come
// back by their recipes.
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

// Of code that cannot be translated: a driver loads a library of it, and says so when something of it is used.
constexpr bool isOfCode(CUresult error) {
  return error == CUDA_ERROR_INVALID_IMAGE || error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
}

class CodeLibrary {
 public:
  // `handle`: the library's own. A preserved image stays where the program has it; another one is copied.
  CodeLibrary(uint64_t handle, std::span<const std::byte> image, bool isPreserved, JitOptions jit);

  // The module of that context, loaded if need be. CUDA's result.
  CUresult moduleIn(Thread& thread, uint64_t context, uint64_t& module);
  // From now on the program is not told what the JIT says: its buffers are its own again.
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
  std::map<uint64_t, uint64_t> modules;  // by context; one that is no longer live has ended with it
  std::optional<std::vector<std::string>> names;
};

// A kernel has no context; launches and queries mean its function in one.
class LibraryKernel {
 public:
  LibraryKernel(uint64_t library, std::string name) : library(library), name(std::move(name)) {}

  const uint64_t library;
  const std::string name;

  // Its function in that context: without a lock if it is the one that was used last on that device. CUDA's result.
  CUresult functionIn(Thread& thread, uint64_t context, uint64_t& function);

  // Applies `set` to its functions on `device`, and to those that it will have there. CUDA's result; after an error the later ones
  // are as they were.
  using Setting = std::function<CUresult(Thread& thread, uint64_t function)>;
  CUresult setOn(Thread& thread, unsigned device, uint64_t key, Setting set);
  // Applies what has been set on its device to a function of the kernel that nobody has yet. CUDA's result.
  CUresult applyTo(Thread& thread, uint64_t function);

 private:
  CUresult load(Thread& thread, uint64_t context, uint64_t& function);

  std::array<std::atomic<uint64_t>, maxDevices> recent{};  // the function that was used last on each device
  std::recursive_mutex setting;  // held while functions are set; before `loading`. What is set may make functions
  std::map<std::pair<unsigned, uint64_t>, Setting> settings;  // by device and what is set
};

// The context on `device` that a call without one of its own means: the current one, or the device's primary context.
uint64_t contextOn(Thread& thread, unsigned device);

// The function that a program's CUfunction names in `context`: itself, or that of a library's kernel. CUDA's result.
CUresult resolveFunction(Thread& thread, uint64_t context, uint64_t& handle);

}  // namespace vgpu::client
