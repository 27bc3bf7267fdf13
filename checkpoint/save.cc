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

// The images of modules, also of those that a group keeps. One that is on its way to a module is not kept: the program sends it
// again.
std::vector<SavedBlob> blobsOf(const stub::SessionState& on) {
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

Manifest describe(stub::SessionState& on, const Identity& identity, const PendingCalls& pending, size_t objectCount) {
  Manifest manifest;
  manifest.software = VGPU_VERSION;
  manifest.created = time(nullptr);
  manifest.identity = identity;
  manifest.devices = devicesOf(on);
  manifest.arenas = arenasOfThisBuild();
  manifest.rings = {pending.rings.begin(), pending.rings.end()};
  manifest.objectCount = objectCount;
  manifest.blobs = blobsOf(on);
  manifest.state = saveState(on);
  manifest.deviceBytes = bytesOf(manifest.state);
  addMethods(manifest.methods, pending);
  addLibraryCalls(manifest.libraryCalls, pending);
  return manifest;
}

std::unique_ptr<ChunkStore> storeAround(const std::string& directory) {
  auto folder = ChunkStore::around(directory);
  return folder ? std::make_unique<ChunkStore>(*folder) : nullptr;
}

void saveBlobs(const stub::SessionState& on, ChunkSink& sink, const PinnedRoom* room, const std::vector<SavedBlob>& blobs,
               const Progress& progress) {
  auto plan = planOf(blobs);
  Phase phase(progress, "images", plan.bytes());
  auto fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
    uint64_t blob = blobs[piece.item].blob;
    auto bytes = on.of(handleDevice(blob)).blobs.find(blob)->bytes();
    std::memcpy(out, bytes.data() + piece.offset, piece.bytes);
    phase.advance(piece.bytes);
    return std::nullopt;
  };
  writeChunks(nullptr, sink, plan, {.fill = fill, .room = room});  // host memory: nothing to pin
}

Report saveQuiesced(stub::SessionState& on, SnapshotWriter& directory, const std::string& objects, const Identity& identity,
                    const Progress& progress, const PinnedRoom* room) {
  KJ_REQUIRE(on.isAttached(), "the worker has no session to save");
  RingCut barrier;
  for (unsigned device = 0; device < on.deviceCount(); ++device) barrier[device] = on.of(device).gpu.executed;
  auto records = recordsOf(objects, barrier);
  PendingCalls pending = capturePendingCalls(on.shared(), barrier);
  Manifest manifest = describe(on, identity, pending, records.size());
  addMethods(manifest.methods, records);
  addLibraryCalls(manifest.libraryCalls, records);
  auto store = storeAround(directory.where());
  manifest.digestKey = store ? store->key() : DigestKey::random();
  auto sink = store ? std::make_unique<ChunkSink>(*store) : std::make_unique<ChunkSink>(directory.openPacks(), manifest.digestKey);
  manifest.files[objectsFile] = directory.write(objectsFile, encodeRecords(records));
  if (room != nullptr) manifest.pool = room->pool;
  saveBlobs(on, *sink, room, manifest.blobs, progress);
  Phase phase(progress, "memory", manifest.deviceBytes);
  saveBytes(on, *sink, room, manifest.state, [&](size_t bytes) {
    faultPoint("suspend.saving");
    phase.advance(bytes);
  });
  finishChunks(*sink);
  manifest.packs = sink->packs();
  manifest.files[chunksFile] = directory.write(chunksFile, encodeChunks(sink->places()));
  manifest.files[pendingCallsFile] = directory.write(pendingCallsFile, encodePendingCalls(pending));
  manifest.files[outputFile] = directory.write(outputFile, std::as_bytes(std::span(on.output.rest())));
  std::string text = encodeManifest(manifest);
  sink->commit();
  directory.publish(text);

  Report report{.deviceBytes = manifest.deviceBytes,
                .storedBytes = storedBytes(manifest) + (store ? sink->writtenBytes() : 0) + text.size(),
                .objects = records.size(),
                .pendingCalls = pending.frameCount};
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
