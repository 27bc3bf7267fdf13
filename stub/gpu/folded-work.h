// The work of one frame in the form of a graph node, so that a run of frames of one stream can be launched as one executable graph
// (docs/folding.md).
//
// Values; they point into the frame that they were read from. Used by the thread of one GPU. Nothing of them survives a suspend.
#pragma once

#include <capnp/common.h>
#include <cuda.h>
#include <kj/array.h>

#include <cstdint>
#include <span>
#include <string>
#include <variant>

namespace vgpu::stub {

struct KernelWork {
  CUfunction real;
  uint64_t function, module;  // virtual handles
  unsigned gridX, gridY, gridZ, blockX, blockY, blockZ, sharedBytes;
  kj::ArrayPtr<const kj::byte> parameters;
};

// A copy of bytes, in the GPU's own memory or host memory.
struct CopyWork {
  CUdeviceptr to, from;
  uint64_t bytes;
};

struct FillWork {
  CUdeviceptr to;
  uint32_t value, elementBytes;
  uint64_t width;
};

// The GPU writes the record's sequence number into its stream's completion word, and then the event is recorded (kinds/event.cc).
struct RecordWork {
  CUevent real;
  uint64_t event;  // virtual handle
  CUdeviceptr word;
  uint64_t sequence;
};

struct FoldedWork {
  std::variant<KernelWork, CopyWork, FillWork, RecordWork> what;
  // What an update of an executable graph cannot change: the type of the node, and whether a copy's or fill's memory is host memory.
  char shape;
  // Work with the same shape and the same words is the same, apart from a record's sequence number. `hash` covers both.
  kj::ArrayPtr<const capnp::word> words;
  uint64_t hash;
  // Hash of the shape and of the launched function: the same for work that differs in parameters only.
  uint64_t kind;
};
using FoldedRun = std::span<const FoldedWork>;

// Combines a hash with another number. Not collision-resistant: equal hashes are followed by a comparison.
constexpr uint64_t hashOf(uint64_t before, uint64_t number) {
  uint64_t mixed = (before ^ number) * 0x9e37'79b9'7f4a'7c15;
  return mixed ^ mixed >> 29;
}

}  // namespace vgpu::stub
