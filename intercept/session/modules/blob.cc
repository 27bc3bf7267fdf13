#include "intercept/session/modules/blob.h"

#include <algorithm>
#include <cstring>

#include "intercept/session/call.h"
#include "vgpu/wire/image-digest.h"

namespace vgpu::client {

namespace {

// `found`: whether the worker has the image now; if not, it has reserved space for it.
CUresult findBlob(Thread& thread, uint64_t blob, std::span<const std::byte> image, bool& found) {
  bool asksStore = thread.session.segment.header().storesImages.load(std::memory_order_relaxed) != 0;
  ImageDigest digest{};
  if (asksStore) digest = digestOf(image);  // before the frame is reserved, so that no other thread waits for it
  Call<api::Cuda::BlobFindParams> frame(thread.of(blob), api::Method::blobFind, dataWords(digest.size()));
  frame->setBlob(blob);
  if (asksStore) frame->setDigest(kj::arrayPtr(digest.data(), digest.size()));
  frame->setTotalBytes(image.size());
  if (CUresult error = frame.call()) return error;
  found = frame.results<api::Cuda::BlobFindResults>().getFound();
  return CUDA_SUCCESS;
}

CUresult sendBlob(Thread& thread, uint64_t blob, std::span<const std::byte> image) {
  Session& session = thread.session;
  for (uint64_t offset = 0; offset < image.size(); offset += slabBytes) {
    auto piece = image.subspan(offset, std::min<uint64_t>(slabBytes, image.size() - offset));
    auto slab = session.slabs.take(thread.firstSlab(), Slabs::worker, session.lost);
    if (!slab) return session.lossResult();
    std::memcpy(session.segment.slab(*slab), piece.data(), piece.size());
    Call<api::Cuda::BlobWriteParams> frame(thread.of(blob), api::Method::blobWrite);
    frame->setBlob(blob);
    frame->setOffset(offset);
    frame->setTotalBytes(image.size());
    frame->setSlab(*slab);
    frame->setBytes(static_cast<uint32_t>(piece.size()));
    session.slabs.lend(*slab, frame.device(), frame.sequence());
    if (CUresult error = frame.post()) return error;
  }
  return CUDA_SUCCESS;
}

}  // namespace

CUresult bringBlob(Thread& thread, uint64_t blob, std::span<const std::byte> image) {
  bool found = false;
  if (CUresult error = findBlob(thread, blob, image, found)) return error;
  return found ? CUDA_SUCCESS : sendBlob(thread, blob, image);
}

CUresult dropBlob(Thread& thread, uint64_t blob) {
  Call<api::Cuda::BlobDropParams> frame(thread.of(blob), api::Method::blobDrop);
  frame->setBlob(blob);
  return frame.post();
}

}  // namespace vgpu::client
