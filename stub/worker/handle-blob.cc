// By hand: module images on their way to the worker, from the program or from the node's store.
#include <algorithm>

#include "cuda-handlers.h"
#include "stub/worker/image-store.h"

namespace vgpu::stub {

namespace {

constexpr uint64_t maxBlobBytes = 4 * GiB;

void count(std::atomic<uint64_t> ImageCounters::*which, const Images& images, uint64_t more) {
  if (images.counters != nullptr) (images.counters->*which).fetch_add(more, std::memory_order_relaxed);
}

}  // namespace

// What is found is mapped, not copied, and the program sends nothing. The digest is the program's word: it gets what it
// can name, as it could have sent it.
CUresult blobFind(Execution& on, const api::FrameReader<api::Cuda::BlobFindParams>& p, Answer& answer) {
  auto digest = p.getDigest();
  ImageDigest wanted;
  if (digest.size() != wanted.size() || p.getTotalBytes() == 0 || p.getTotalBytes() > maxBlobBytes ||
      on.blobs.contains(p.getBlob()))
    return CUDA_ERROR_INVALID_VALUE;
  std::copy(digest.begin(), digest.end(), wanted.begin());
  auto results = answer.init<api::Cuda::BlobFindResults>();
  if (on.images.store == nullptr) return CUDA_SUCCESS;
  auto image = on.images.store->find(wanted);
  if (!image) return CUDA_SUCCESS;
  if (image->bytes().size() != p.getTotalBytes()) return CUDA_ERROR_INVALID_VALUE;
  on.blobs.emplace(p.getBlob(), std::move(*image));
  count(&ImageCounters::found, on.images, 1);
  count(&ImageCounters::foundBytes, on.images, p.getTotalBytes());
  results.setFound(true);
  return CUDA_SUCCESS;
}

CUresult blobWrite(Execution& on, const api::FrameReader<api::Cuda::BlobWriteParams>& p, Answer&) {
  uint64_t total = p.getTotalBytes(), offset = p.getOffset(), bytes = p.getBytes();
  if (p.getSlab() >= slabCount || bytes > slabBytes || total > maxBlobBytes || offset > total || bytes > total - offset)
    return CUDA_ERROR_INVALID_VALUE;
  auto [place, isNew] = on.blobs.emplace(p.getBlob(), Blob::Origin::program);
  Blob& blob = place->second;
  if (isNew) {
    blob.resize(total);
    count(&ImageCounters::sent, on.images, 1);
  }
  if (!blob.isWritable() || blob.bytes().size() != total) return CUDA_ERROR_INVALID_VALUE;
  blob.write(offset, {on.shared().slab(p.getSlab()), bytes});
  count(&ImageCounters::sentBytes, on.images, bytes);
  on.shared().slabState(p.getSlab()).busy.store(0, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult blobDrop(Execution& on, const api::FrameReader<api::Cuda::BlobDropParams>& p, Answer&) {
  on.blobs.erase(p.getBlob());
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
