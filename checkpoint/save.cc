#include <fmt/format.h>
#include <kj/debug.h>

#include <cstring>
#include <ctime>
#include <map>

#include "checkpoint/device-identity.h"
#include "vgpu/snapshot/library-calls.h"
#include "vgpu/snapshot/methods.h"
#include "vgpu/snapshot/pending-calls.h"
#include "stub/worker/execution.h"
#include "checkpoint/progress.h"
#include "checkpoint/recipes.h"
#include "checkpoint/session-capture.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state.h"
#include "vgpu/snapshot/records.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::checkpoint {

namespace {

std::vector<ObjectRecord> recordsOf(const std::string& objects, const RingCut& barrier) {
  std::vector<ObjectRecord> records;
  vgpu::readObjects(objects, [&](ObjectRecord&& record) { records.push_back(std::move(record)); });
  return recordsAt(std::move(records), barrier);
}

Manifest manifestOf(stub::SessionState& on, const Identity& identity, const PendingCalls& pending, size_t objectCount) {
  Manifest manifest;
  manifest.software = VGPU_VERSION;
  manifest.created = time(nullptr);
  manifest.identity = identity;
  manifest.devices = devicesOf(on);
  manifest.arenas = arenasOfThisBuild();
  manifest.rings = {pending.rings.begin(), pending.rings.end()};
  manifest.objectCount = objectCount;
  manifest.blobs = imagesOf(on);
  manifest.state = saveState(on);
  manifest.deviceBytes = bytesOf(manifest.state);
  addMethods(manifest.methods, pending);
  addLibraryCalls(manifest.libraryCalls, pending);
  return manifest;
}

}  // namespace

// The images of modules, including those kept for a module group. An image that is being sent for a module is not saved: the program sends
// it again.
std::vector<SavedBlob> imagesOf(const stub::SessionState& on) {
  std::map<uint64_t, uint64_t> blobs;
  for (unsigned device = 0; device < on.deviceCount(); ++device) {
    auto& of = on.of(device);
    auto numbers = of.moduleGroups.images();
    for (auto [module, number] : of.modules.blobs) numbers.insert(number);
    for (uint64_t number : numbers)
      if (auto* blob = of.blobs.find(number)) blobs[number] = blob->bytes().size();
  }
  std::vector<SavedBlob> saved;
  for (auto [number, bytes] : blobs) saved.push_back({number, bytes});
  return saved;
}

SessionCapture captureSession(stub::SessionState& on, const std::string& objects, const Identity& identity) {
  KJ_REQUIRE(on.isAttached(), "the worker has no session to save");
  RingCut barrier;
  for (unsigned device = 0; device < on.deviceCount(); ++device) barrier[device] = on.of(device).gpu.executed;
  SessionCapture capture;
  capture.records = recordsOf(objects, barrier);
  capture.pending = capturePendingCalls(on.shared(), barrier);
  capture.manifest = manifestOf(on, identity, capture.pending, capture.records.size());
  addMethods(capture.manifest.methods, capture.records);
  addLibraryCalls(capture.manifest.libraryCalls, capture.records);
  capture.output = std::string(on.output.rest());
  return capture;
}

NewChunks::NewChunks(SnapshotWriter& directory) {
  if (auto folder = ChunkStore::around(directory.where())) {
    store = std::make_unique<ChunkStore>(*folder);
    sink = std::make_unique<ChunkSink>(*store);
  } else {
    sink = std::make_unique<ChunkSink>(directory.openPacks(), DigestKey::random());
  }
}

void saveImages(const stub::SessionState& on, ChunkSink& sink, ChunkSource where, const ImageDigests& known,
                const std::vector<SavedBlob>& blobs, const Progress& progress) {
  auto plan = planOf(blobs);
  Phase phase(progress, "images", plan.bytes());
  where.fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
    uint64_t blob = blobs[piece.item].blob;
    auto bytes = on.of(handleDevice(blob)).blobs.find(blob)->bytes();
    std::memcpy(out, bytes.data() + piece.offset, piece.bytes);
    phase.advance(piece.bytes);
    return std::nullopt;
  };
  where.digest = [&](const Piece& piece) -> std::optional<Digest> {
    auto found = known.find({blobs[piece.item].blob, piece.offset});
    return found == known.end() ? std::nullopt : std::optional(found->second);
  };
  where.found = [&](size_t bytes) { phase.advance(bytes); };
  writeChunks(nullptr, sink, plan, where);  // host memory: needs no pinning
}

Report publish(SessionCapture& capture, NewChunks& chunks, SnapshotWriter& directory, PhaseClock& clock) {
  Manifest& manifest = capture.manifest;
  ChunkSink& sink = *chunks.sink;
  finishChunks(sink);
  clock.end("sync");
  manifest.digestKey = sink.key;
  manifest.packs = sink.packs();
  manifest.files[objectsFile] = directory.write(objectsFile, encodeRecords(capture.records));
  manifest.files[chunksFile] = directory.write(chunksFile, encodeChunks(sink.places()));
  manifest.files[pendingCallsFile] = directory.write(pendingCallsFile, encodePendingCalls(capture.pending));
  manifest.files[outputFile] = directory.write(outputFile, std::as_bytes(std::span(capture.output)));
  std::string text = encodeManifest(manifest);
  sink.commit();
  directory.publish(text);
  clock.end("manifest");
  return {.deviceBytes = manifest.deviceBytes,
          .storedBytes = storedBytes(manifest) - sink.leftBytes() + (chunks.store ? sink.writtenBytes() : 0) + text.size(),
          .objects = capture.records.size(),
          .pendingCalls = capture.pending.frameCount,
          .phases = clock.take()};
}

namespace {

Report saveQuiesced(stub::SessionState& on, SnapshotWriter& directory, const std::string& objects, const Identity& identity,
                    const Progress& progress, const PinnedRoom* room) {
  PhaseClock clock;
  uint64_t copied = 0;
  auto capture = captureSession(on, objects, identity);
  NewChunks chunks(directory);
  if (room != nullptr) capture.manifest.pool = room->pool;
  clock.end("objects");
  ChunkSource where{.room = room, .clock = &clock, .copied = &copied};
  saveImages(on, *chunks.sink, where, {}, capture.manifest.blobs, progress);
  Phase phase(progress, "memory", capture.manifest.deviceBytes);
  saveBytes(on, *chunks.sink, where, capture.manifest.state, [&](size_t bytes) {
    faultPoint("suspend.saving");
    phase.advance(bytes);
  });
  Report report = publish(capture, chunks, directory, clock);
  report.copiedBytes = copied;
  return report;
}

}  // namespace

Report save(stub::Worker& worker, SnapshotWriter& writer, const std::string& objects, const Identity& identity,
            const Progress& progress, const PinnedRoom* room) {
  Report report;
  worker.runQuiesced([&](stub::SessionState& on) { report = saveQuiesced(on, writer, objects, identity, progress, room); });
  return report;
}

Report save(stub::Worker& worker, const std::string& directory, const std::string& objects, const Identity& identity,
            const Progress& progress) {
  SnapshotWriter writer(directory);
  return save(worker, writer, objects, identity, progress);
}

}  // namespace vgpu::checkpoint
