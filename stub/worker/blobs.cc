#include "stub/worker/blobs.h"

namespace vgpu::stub {

bool Blobs::take(uint64_t bytes) {
  // Both counters add before they compare: two threads that reach a limit at the same time may both be refused, but never both accepted.
  bool fits = usage.count.fetch_add(1) < limits.count;
  uint64_t before = usage.ownBytes.fetch_add(bytes);
  if (fits && before <= limits.allBytes && bytes <= limits.allBytes - before) return true;
  give(bytes);
  return false;
}

void Blobs::give(uint64_t bytes) {
  usage.count.fetch_sub(1);
  usage.ownBytes.fetch_sub(bytes);
}

CUresult Blobs::reserve(uint64_t number, Blob::Origin origin, uint64_t bytes) {
  std::lock_guard lock(mutex);
  if (bytes == 0 || blobs.contains(number)) return CUDA_ERROR_INVALID_VALUE;
  if (bytes > limits.eachBytes || !take(bytes)) return CUDA_ERROR_OUT_OF_MEMORY;
  auto blob = Blob::reserve(origin, bytes, majors);
  if (!blob) {
    give(bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
  }
  blobs.emplace(number, std::move(*blob));
  return CUDA_SUCCESS;
}

CUresult Blobs::add(uint64_t number, std::shared_ptr<const StoredImage> image) {
  std::lock_guard lock(mutex);
  if (blobs.contains(number)) return CUDA_ERROR_INVALID_VALUE;
  if (!take(0)) return CUDA_ERROR_OUT_OF_MEMORY;
  blobs.emplace(number, Blob(std::move(image), majors));
  return CUDA_SUCCESS;
}

void Blobs::drop(uint64_t number) {
  std::lock_guard lock(mutex);
  auto found = blobs.find(number);
  if (found == blobs.end()) return;
  give(found->second.isOwn() ? found->second.bytes().size() : 0);
  blobs.erase(found);
}

Blob* Blobs::find(uint64_t number) {
  std::lock_guard lock(mutex);
  auto found = blobs.find(number);
  return found == blobs.end() ? nullptr : &found->second;
}

const Blob* Blobs::find(uint64_t number) const {
  std::lock_guard lock(mutex);
  auto found = blobs.find(number);
  return found == blobs.end() ? nullptr : &found->second;
}

}  // namespace vgpu::stub
