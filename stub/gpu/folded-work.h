// What a frame gives the GPU, as a node of a graph expresses it: so that a run of frames of one stream can be launched as one
// executable graph (docs/folding.md).
//
// Values; they point into the frame that they were read from. The thread's of one GPU. Nothing of them survives a suspend.
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

// Bytes from one place to another, in the GPU's own memory or in memory of the host.
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
  // What an update of an executable graph cannot change: the kind of node, and where a copy's or fill's memory is.
  char shape;
  // Work with the same shape and the same words is the same, but for a record's sequence number. `hash` is of both.
  kj::ArrayPtr<const capnp::word> words;
  uint64_t hash;
  // Of the shape, and of the function that is launched: work that differs in parameters only is alike.
  uint64_t kind;
};
using FoldedRun = std::span<const FoldedWork>;

// A hash of what was hashed before and another number. Not for what an enemy chooses: whoever finds an equal one compares.
constexpr uint64_t hashOf(uint64_t before, uint64_t number) {
  uint64_t mixed = (before ^ number) * 0x9e37'79b9'7f4a'7c15;
  return mixed ^ mixed >> 29;
}

}  // namespace vgpu::stub
