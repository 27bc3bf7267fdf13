#include <fmt/format.h>
#include <kj/debug.h>

#include <cstring>
#include <ctime>
#include <set>

#include "checkpoint/device-identity.h"
#include "checkpoint/pending-calls.h"
#include "checkpoint/progress.h"
#include "checkpoint/recipes.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::checkpoint {

namespace {

std::vector<ObjectRecord> recordsOf(const std::string& objects, uint64_t barrier) {
  std::vector<ObjectRecord> records;
  vgpu::readObjects(objects, [&](ObjectRecord&& record) { records.push_back(std::move(record)); });
  return recordsAt(std::move(records), barrier);
}

// The images of modules. One that is on its way to a module is not kept: the program sends it again.
std::vector<SavedBlob> blobsOf(const stub::Execution& on) {
  std::set<uint64_t> numbers;
  for (auto [module, number] : on.modules) numbers.insert(number);
  std::vector<SavedBlob> blobs;
  for (uint64_t number : numbers)
    if (auto* blob = on.blobs.find(number)) blobs.push_back({number, blob->bytes().size()});
  return blobs;
}

Manifest describe(stub::Execution& on, const Identity& identity, const PendingCalls& pending, size_t objectCount) {
  Manifest manifest;
  manifest.software = VGPU_VERSION;
  manifest.created = time(nullptr);
  manifest.identity = identity;
  manifest.devices = devicesOf(on);
  manifest.arenas = arenasOfThisBuild();
  manifest.barrier = pending.barrier;
  manifest.head = pending.head;
  manifest.objectCount = objectCount;
  manifest.blobs = blobsOf(on);
  manifest.state = saveState(on);
  return manifest;
}

FileSum saveBlobs(const stub::Execution& on, Pipeline& pipeline, SnapshotWriter& directory,
                  const std::vector<SavedBlob>& blobs, const Progress& progress) {
  std::vector<uint64_t> sizes;
  uint64_t total = 0;
  for (auto& blob : blobs) {
    sizes.push_back(blob.bytes);
    total += blob.bytes;
  }
  Phase phase(progress, "images", total);
  FileWriter file = directory.create(blobsFile);
  writeChunks(pipeline, file, ChunkPlan(std::move(sizes)), [&](const Piece& piece, std::byte* out) {
    auto bytes = on.blobs.find(blobs[piece.item].blob)->bytes();
    std::memcpy(out, bytes.data() + piece.offset, piece.bytes);
    phase.advance(piece.bytes);
  });
  return file.finish();
}

Report saveQuiesced(stub::Execution& on, SnapshotWriter& directory, const std::string& objects, const Identity& identity,
                    const Progress& progress) {
  KJ_REQUIRE(on.isAttached(), "the worker has no session to save");
  auto records = recordsOf(objects, on.ringPosition);
  PendingCalls pending = capturePendingCalls(on.shared(), on.ringPosition);
  Manifest manifest = describe(on, identity, pending, records.size());
  Pipeline pipeline(&on.driver);
  manifest.files[objectsFile] = directory.write(objectsFile, encodeRecords(records));
  manifest.files[blobsFile] = saveBlobs(on, pipeline, directory, manifest.blobs, progress);
  uint64_t deviceBytes = bytesOf(manifest.state);
  Phase phase(progress, "memory", deviceBytes);
  FileWriter file = directory.create(bytesFile);
  saveBytes(on, pipeline, file, manifest.state, [&](size_t bytes) {
    faultPoint("suspend.saving");
    phase.advance(bytes);
  });
  manifest.files[bytesFile] = file.finish();
  manifest.files[pendingCallsFile] = directory.write(pendingCallsFile, encodePendingCalls(pending));
  manifest.files[outputFile] = directory.write(outputFile, std::as_bytes(std::span(on.output.rest())));
  std::string text = encodeManifest(manifest);
  directory.publish(text);

  Report report{.deviceBytes = deviceBytes,
                .storedBytes = text.size(),
                .objects = records.size(),
                .pendingCalls = pending.frameCount};
  for (auto& [name, sum] : manifest.files) report.storedBytes += sum.bytes;
  return report;
}

}  // namespace

Report save(stub::Worker& worker, SnapshotWriter& writer, const std::string& objects, const Identity& identity,
            const Progress& progress) {
  Report report;
  worker.runQuiesced([&](stub::Execution& on) { report = saveQuiesced(on, writer, objects, identity, progress); });
  return report;
}

Report save(stub::Worker& worker, const std::string& directory, const std::string& objects, const Identity& identity,
            const Progress& progress) {
  SnapshotWriter writer(directory);
  return save(worker, writer, objects, identity, progress);
}

}  // namespace vgpu::checkpoint
