// A worker's state of libraries on one GPU: the functions that have been called, the objects, and their settings.
//
// Used by the thread of that GPU, and while no calls are executed. Settings are kept here and not as recipes in the object list, because
// they are posted: a frame that replaces another in the list must have been executed (docs/objects.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "vgpu/api/library.h"

namespace vgpu::stub {

struct LibraryFunction {
  const api::LibraryEntry* entry = nullptr;
  void* function = nullptr;
};

// A call that changed an object: its argument block, with virtual handles.
struct LibrarySetting {
  uint64_t entry = 0;  // signature
  uint32_t hostMask = 0;
  std::vector<std::byte> block;
};

struct KnownLibraryObject {
  uint8_t type = 0;
  std::unique_ptr<std::byte[]> place;       // of an object in the program's memory: its copy here
  std::vector<LibrarySetting> settings;     // in the order of the calls
  uint64_t stream = 0;                      // of a handle: the stream that the library uses for it; 0: the legacy default stream
};

// For one call: its argument block, and its results in host memory.
struct LibraryBuffers {
  std::vector<uint64_t> block, results;
};

struct LibraryObjects {
  std::unordered_map<uint64_t, LibraryFunction> functions;   // by signature
  std::unordered_map<uint64_t, KnownLibraryObject> objects;  // by virtual handle
  LibraryBuffers buffers;                                    // for the call that the GPU's thread executes; their capacity is reused
  std::mutex mutex;  // a leaf: held to insert into and erase from `objects`, and to read it on another GPU's thread

  // Removes an existing object, and returns it.
  KnownLibraryObject take(uint64_t handle) {
    std::lock_guard lock(mutex);
    return std::move(objects.extract(handle).mapped());
  }
  // Any thread. An object, whose address is stable until it is taken; nullptr if there is none.
  KnownLibraryObject* find(uint64_t handle) {
    std::lock_guard lock(mutex);
    auto found = objects.find(handle);
    return found == objects.end() ? nullptr : &found->second;
  }
};

}  // namespace vgpu::stub
