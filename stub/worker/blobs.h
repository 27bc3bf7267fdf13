// The module images of a session, by the numbers that the program gives them, within limits: what a program sends is the
// memory of its worker.
//
// The working thread's. A suspend keeps those that modules were made of.
#pragma once

#include <cuda.h>

#include <unordered_map>

#include "stub/worker/blob.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

// Of a session: far beyond what programs load. docs/ring.md states them.
struct BlobLimits {
  uint64_t count = 64 * 1024;
  uint64_t eachBytes = 4 * GiB;
  uint64_t allBytes = 16 * GiB;  // without files of the store, whose pages are the system's
};

class Blobs {
 public:
  explicit Blobs(const BlobLimits& limits = {}) : limits(limits) {}

  // Makes a new one. CUDA's answer: invalid value for an empty image or a number that is taken, out of memory where a
  // limit is reached.
  CUresult reserve(uint64_t number, Blob::Origin origin, uint64_t bytes);
  CUresult add(uint64_t number, std::shared_ptr<const StoredImage> image);
  void drop(uint64_t number);

  Blob* find(uint64_t number);
  const Blob* find(uint64_t number) const;

 private:
  CUresult refuse(uint64_t number) const;

  BlobLimits limits;
  uint64_t ownBytes = 0;  // announced
  std::unordered_map<uint64_t, Blob> blobs;
};

}  // namespace vgpu::stub
