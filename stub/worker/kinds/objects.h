// A worker's state of the objects of one GPU besides their handles, one structure for each kind. Only its kind's file (module.cc,
// function.cc, array.cc beside this one) changes a structure, on the thread of that GPU.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace vgpu::stub {

struct ModuleVariable {
  uint64_t module = 0;  // virtual handle
  std::string name;
  uint64_t address = 0, bytes = 0;
};

struct Modules {
  std::unordered_map<uint64_t, uint64_t> blobs;             // module's virtual handle to the number of its image
  std::unordered_map<uint64_t, ModuleVariable> variables;   // those that the program has looked up, by virtual handle
  mutable std::mutex mutex;  // a leaf: held to change `variables`, and to read them on another GPU's thread

  // Any thread. Whether the variables cover [address, address + bytes).
  bool haveVariables(uint64_t address, uint64_t bytes) const;
};

// What a launch needs of its GPU that not every GPU has. A snapshot keeps it, because after a resume the GPU must have it too.
struct LaunchNeed {
  uint64_t blocks = 0;                    // to run at once, for a cooperative launch; else 0
  uint64_t threads = 0, sharedBytes = 0;  // of a block; shared: dynamic, as given by the launch
  uint64_t clusterBlocks = 0;             // of a cluster; 0: no cluster
};

struct FunctionInfo {
  uint64_t module = 0;  // virtual handle
  CUfunction real = nullptr;
  uint32_t parameterBytes = 0;
  std::vector<uint32_t> parameterOffsets;
  bool hasClusters = false;  // in every launch
  std::vector<LaunchNeed> needs;  // of its launches so far: those that no other one covers
  std::string name;
};
using Functions = std::unordered_map<uint64_t, FunctionInfo>;  // by virtual handle

// An array as bytes: rows of elements, or of blocks of elements, without gaps, slice after slice. A mipmapped array, and an array of
// several planes, has no rows: its parts have.
struct ArrayInfo {
  uint64_t whole = 0;  // virtual handle of the array to which this part belongs; 0: not a part
  uint64_t rowBytes = 0, rows = 0, slices = 0;
  bool isMapped = false;  // its memory is what the program maps to it (tile-state.h)
  uint64_t bytes() const { return isMapped ? 0 : rowBytes * rows * slices; }
};

struct Arrays {
  std::unordered_map<uint64_t, ArrayInfo> live;  // by virtual handle, mipmapped arrays too
  mutable std::mutex mutex;  // a leaf: held to change `live`, and to read it on another GPU's thread

  // Any thread.
  std::optional<ArrayInfo> find(uint64_t handle) const;
};

}  // namespace vgpu::stub
