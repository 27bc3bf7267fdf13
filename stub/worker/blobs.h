// The images of one GPU's modules, by the numbers that the program gives them, within limits of the session: an image that a program sends
// uses memory of the worker.
//
// Belongs to one GPU: used by its thread and its slow calls, which find and drop images too; `mutex`, a leaf, guards the table. An image
// stays valid until it is dropped, and one that a slow call reads is dropped after that call (SlowCalls::afterAll). `BlobUsage` counts the
// images of all GPUs together. A suspend keeps the images of the session's modules.
#pragma once

#include <cuda.h>

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "stub/worker/blob.h"
#include "vgpu/wire/arena.h"

namespace vgpu::stub {

// Limits of a session, far beyond what programs load (docs/ring.md).
struct BlobLimits {
  uint64_t count = 64 * 1024;
  uint64_t eachBytes = 4 * GiB;
  uint64_t allBytes = 16 * GiB;  // without files of the store, whose pages are in the page cache
};

// Sums over all GPUs of a session. Any of their threads.
struct BlobUsage {
  std::atomic<uint64_t> count{0}, ownBytes{0};  // ownBytes: as announced
};

class Blobs {
 public:
  // `majors`: of the GPU.
  explicit Blobs(BlobUsage& usage, const BlobLimits& limits = {}, Majors majors = allMajors)
      : usage(usage), limits(limits), majors(majors) {}

  // Adds an image. CUDA's result: invalid value for an empty image or a number in use, out of memory if a limit is reached.
  CUresult reserve(uint64_t number, Blob::Origin origin, uint64_t bytes);
  CUresult add(uint64_t number, std::shared_ptr<const StoredImage> image);
  void drop(uint64_t number);

  Blob* find(uint64_t number);
  const Blob* find(uint64_t number) const;

 private:
  // Counts one more image with `bytes` of its own. False, and counts nothing, if a limit is reached.
  bool take(uint64_t bytes);
  void give(uint64_t bytes);

  BlobUsage& usage;
  BlobLimits limits;
  const Majors majors;
  mutable std::mutex mutex;
  std::unordered_map<uint64_t, Blob> blobs;
};

}  // namespace vgpu::stub
