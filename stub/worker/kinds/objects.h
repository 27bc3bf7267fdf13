// What a worker keeps of the objects of one GPU besides their handles, a structure a kind. Each is its kind's own: the files
// module.cc, function.cc and array.cc beside this one change it, with the thread of that GPU.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

namespace vgpu::stub {

struct ModuleVariable {
  uint64_t module = 0;  // virtual handle
  std::string name;
  uint64_t address = 0, bytes = 0;
};

struct Modules {
  std::unordered_map<uint64_t, uint64_t> blobs;             // virtual handle to the blob of its image
  std::unordered_map<uint64_t, ModuleVariable> variables;   // those the program asked for, by virtual handle
  mutable std::mutex mutex;  // a leaf: held to change `variables`, and to read them on another GPU's thread

  // Any thread. Whether these cover [address, address + bytes).
  bool haveVariables(uint64_t address, uint64_t bytes) const;
};

struct FunctionInfo {
  uint64_t module = 0;  // virtual handle
  CUfunction real = nullptr;
  uint32_t parameterBytes = 0;
  std::vector<uint32_t> parameterOffsets;
  bool hasClusters = false;  // of every launch
  std::string name;
};
using Functions = std::unordered_map<uint64_t, FunctionInfo>;  // by virtual handle

// An array as bytes: rows of elements without gaps, slice after slice.
struct ArrayInfo {
  uint64_t mipmap = 0;  // virtual handle; 0: it is no level
  uint64_t rowBytes = 0, rows = 0, slices = 0;
  uint64_t bytes() const { return rowBytes * rows * slices; }
};

struct Arrays {
  std::unordered_map<uint64_t, ArrayInfo> live;  // by virtual handle
  mutable std::mutex mutex;  // a leaf: held to change `live`, and to read it on another GPU's thread

  // Any thread.
  std::optional<ArrayInfo> find(uint64_t handle) const;
};

}  // namespace vgpu::stub
