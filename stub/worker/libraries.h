// NVIDIA's own libraries on the GPU's host (genuine libraries), each loaded when the session first uses it.
//
// One for the session, used by the threads of its GPUs: `mutex` is a leaf except for the dynamic linker's own lock. It is held while a
// library is loaded or an entry looked up, which a GPU's thread does once for each entry (LibraryObjects::functions).
//
// Nothing of it survives a suspend: another worker loads the libraries that the session's objects need when it executes their recipes.
#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>

#include "vgpu/api/library.h"

namespace vgpu::stub {

class Libraries {
 public:
  // `folder`: where the libraries are; empty: the dynamic linker's search path. `isEmulated`: without a folder there are no libraries,
  // because a genuine library needs a real GPU.
  Libraries(std::string folder, bool isEmulated) : folder(std::move(folder)), isEmulated(isEmulated) {}
  Libraries(const Libraries&) = delete;
  Libraries& operator=(const Libraries&) = delete;

  // nullptr if the library or that entry is missing; `problem` says why.
  void* find(const api::LibraryEntry& entry, std::string& problem);
  // Whether find() need not load the library.
  bool isLoaded(uint8_t library) {
    std::lock_guard lock(mutex);
    return all[library].handle != nullptr;
  }

 private:
  struct Loaded {
    void* handle = nullptr;
    std::string problem;
    bool tried = false;
  };
  void load(const api::Library& library, Loaded& loaded);

  const std::string folder;
  const bool isEmulated;
  std::mutex mutex;
  std::array<Loaded, 8> all;
};

// Calls a function with its arguments as words, at most maxLibraryArguments.
uint64_t callByWords(void* function, const uint64_t* words, size_t count);

}  // namespace vgpu::stub
