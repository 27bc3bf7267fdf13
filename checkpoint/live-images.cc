#include "checkpoint/live-images.h"

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

TakeImage intoSink(ChunkSink& sink, ImageDigests& images) {
  return [&](uint64_t number, std::span<const std::byte> bytes) {
    ChunkPlan plan({bytes.size()});
    for (size_t chunk = sink.reserve(plan.count()); auto piece = plan.next(); ++chunk) {
      sink.add(0, chunk, bytes.subspan(piece->offset, piece->bytes));
      images[{number, piece->offset}] = sink.digestOf(chunk);
    }
  };
}

CopiedImages copyNewImages(const Visit& visit, const ImageDigests& images, const TakeImage& take) {
  CopiedImages result;
  std::vector<SavedBlob> blobs;
  visit([&](stub::SessionState& on) { blobs = imagesOf(on); });
  std::erase_if(blobs, [&](const SavedBlob& saved) { return images.contains({saved.blob, 0}); });
  for (auto& saved : blobs) result.leftBytes += saved.bytes;
  for (auto& saved : blobs) {
    uint64_t number = saved.blob;
    std::vector<std::byte> bytes;
    bool isVisited = visit([&](stub::SessionState& on) {
      if (auto* blob = on.of(handleDevice(number)).blobs.find(number)) bytes.assign(blob->bytes().begin(), blob->bytes().end());
    });
    if (!isVisited) break;
    if (!bytes.empty()) take(number, bytes);  // else the image was dropped
    result.copiedBytes += bytes.size();
    result.leftBytes -= saved.bytes;
  }
  return result;
}

ImageDigests copyImages(ChunkSink& sink, const Visit& visit) {
  ImageDigests images;
  copyNewImages(visit, images, intoSink(sink, images));
  return images;
}

}  // namespace vgpu::checkpoint
