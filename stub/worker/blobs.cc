#include "stub/worker/blobs.h"

namespace vgpu::stub {

CUresult Blobs::refuse(uint64_t number) const {
  if (blobs.contains(number)) return CUDA_ERROR_INVALID_VALUE;
  return blobs.size() >= limits.count ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

CUresult Blobs::reserve(uint64_t number, Blob::Origin origin, uint64_t bytes) {
  if (bytes == 0) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = refuse(number)) return error;
  if (bytes > limits.eachBytes || bytes > limits.allBytes - ownBytes) return CUDA_ERROR_OUT_OF_MEMORY;
  auto blob = Blob::reserve(origin, bytes);
  if (!blob) return CUDA_ERROR_OUT_OF_MEMORY;
  blobs.emplace(number, std::move(*blob));
  ownBytes += bytes;
  return CUDA_SUCCESS;
}

CUresult Blobs::add(uint64_t number, std::shared_ptr<const StoredImage> image) {
  if (CUresult error = refuse(number)) return error;
  blobs.emplace(number, Blob(std::move(image)));
  return CUDA_SUCCESS;
}

void Blobs::drop(uint64_t number) {
  auto found = blobs.find(number);
  if (found == blobs.end()) return;
  if (found->second.isOwn()) ownBytes -= found->second.bytes().size();
  blobs.erase(found);
}

Blob* Blobs::find(uint64_t number) {
  auto found = blobs.find(number);
  return found == blobs.end() ? nullptr : &found->second;
}

const Blob* Blobs::find(uint64_t number) const {
  auto found = blobs.find(number);
  return found == blobs.end() ? nullptr : &found->second;
}

}  // namespace vgpu::stub
