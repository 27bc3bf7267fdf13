#include "checkpoint/live-images.h"

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

namespace {

// Nothing of one that has ended.
void addChunks(ChunkSink& sink, uint64_t number, std::span<const std::byte> bytes, ImageDigests& images) {
  ChunkPlan plan({bytes.size()});
  for (size_t chunk = sink.reserve(plan.count()); auto piece = plan.next(); ++chunk) {
    sink.add(0, chunk, bytes.subspan(piece->offset, piece->bytes));
    images[{number, piece->offset}] = sink.digestOf(chunk);
  }
}

}  // namespace

CopiedImages copyNewImages(ChunkSink& sink, const Visit& visit, ImageDigests& images) {
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
    addChunks(sink, number, bytes, images);
    result.copiedBytes += bytes.size();
    result.leftBytes -= saved.bytes;
  }
  return result;
}

ImageDigests copyImages(ChunkSink& sink, const Visit& visit) {
  ImageDigests images;
  copyNewImages(sink, visit, images);
  return images;
}

}  // namespace vgpu::checkpoint
