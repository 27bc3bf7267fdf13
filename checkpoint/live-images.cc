#include "checkpoint/live-images.h"

#include "stub/worker/execution.h"

namespace vgpu::checkpoint {

ImageDigests copyImages(ChunkSink& sink, const Visit& visit) {
  ImageDigests images;
  std::vector<SavedBlob> blobs;
  visit([&](stub::SessionState& on) { blobs = imagesOf(on); });
  for (auto& saved : blobs) {
    uint64_t number = saved.blob;
    std::vector<std::byte> bytes;
    bool isVisited = visit([&](stub::SessionState& on) {
      if (auto* blob = on.of(handleDevice(number)).blobs.find(number)) bytes.assign(blob->bytes().begin(), blob->bytes().end());
    });
    if (!isVisited) break;
    ChunkPlan plan({bytes.size()});
    for (size_t chunk = sink.reserve(plan.count()); auto piece = plan.next(); ++chunk) {
      sink.add(0, chunk, std::span(bytes).subspan(piece->offset, piece->bytes));
      images[{number, piece->offset}] = sink.digestOf(chunk);
    }
  }
  return images;
}

}  // namespace vgpu::checkpoint
