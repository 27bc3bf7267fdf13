// By hand: module images on their way to the worker, from the program or from the node's store.
#include <algorithm>

#include "cuda-handlers.h"
#include "stub/worker/image-store.h"

namespace vgpu::stub {

namespace {

void count(std::atomic<uint64_t> ImageCounters::*which, const Images& images, uint64_t more) {
  if (images.counters != nullptr) (images.counters->*which).fetch_add(more, std::memory_order_relaxed);
}

}  // namespace

// An image that is found is mapped, not copied, and the program sends nothing. The program chooses the digest: it may use any image whose
// digest it knows, as it could have sent that image. For an image that is not found, room is reserved, within the session's limits, so that
// the program can send it.
CUresult blobFind(Execution& on, const api::FrameReader<api::Cuda::BlobFindParams>& p, Reply& reply) {
  auto digest = p.getDigest();
  ImageDigest wanted;
  if (digest.size() != 0 && digest.size() != wanted.size()) return CUDA_ERROR_INVALID_VALUE;
  auto results = reply.init<api::Cuda::BlobFindResults>();
  std::shared_ptr<const StoredImage> image;
  if (digest.size() != 0 && on.session.images.store != nullptr) {
    std::copy(digest.begin(), digest.end(), wanted.begin());
    image = on.session.images.store->find(wanted);
  }
  if (image == nullptr) return on.blobs.reserve(p.getBlob(), Blob::Origin::program, p.getTotalBytes());
  if (image->bytes().size() != p.getTotalBytes()) return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = on.blobs.add(p.getBlob(), std::move(image))) return error;
  count(&ImageCounters::found, on.session.images, 1);
  count(&ImageCounters::foundBytes, on.session.images, p.getTotalBytes());
  results.setFound(true);
  return CUDA_SUCCESS;
}

// Pieces come in order. A piece of an image that was not announced here belongs to a transfer that a suspend has interrupted: it is
// ignored, the load that follows finds the image missing, and the program sends it again.
CUresult blobWrite(Execution& on, const api::FrameReader<api::Cuda::BlobWriteParams>& p, Reply&) {
  if (p.getSlab() >= slabCount || p.getBytes() > slabBytes) return CUDA_ERROR_INVALID_VALUE;
  uint64_t bytes = p.getBytes();
  if (Blob* blob = on.blobs.find(p.getBlob())) {
    uint64_t arrived = blob->arrivedBytes(), total = blob->bytes().size();
    if (!blob->isOwn() || p.getTotalBytes() != total || p.getOffset() != arrived || bytes > total - arrived)
      return CUDA_ERROR_INVALID_VALUE;
    if (arrived == 0) count(&ImageCounters::sent, on.session.images, 1);
    count(&ImageCounters::sentBytes, on.session.images, bytes);
    blob->append({on.shared().slab(p.getSlab()), bytes});
  }
  on.shared().slabState(p.getSlab()).busy.store(0, std::memory_order_release);
  return CUDA_SUCCESS;
}

CUresult blobDrop(Execution& on, const api::FrameReader<api::Cuda::BlobDropParams>& p, Reply&) {
  on.slow.afterAll([&on, blob = p.getBlob()] {
    if (!on.moduleGroups.keepsImage(blob)) on.blobs.drop(blob);
  });
  return CUDA_SUCCESS;
}

}  // namespace vgpu::stub
