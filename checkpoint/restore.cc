#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include "checkpoint/device-identity.h"
#include "checkpoint/pinned-chunks.h"
#include "checkpoint/progress.h"
#include "checkpoint/recipes.h"
#include "checkpoint/saved-snapshot.h"
#include "checkpoint/sent-ahead.h"
#include "checkpoint/snapshot.h"
#include "checkpoint/state.h"
#include "checkpoint/twin-memory.h"
#include "stub/worker/execution.h"
#include "stub/worker/lease-placements.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/snapshot/library-calls.h"
#include "vgpu/snapshot/methods.h"
#include "vgpu/snapshot/pending-calls.h"
#include "vgpu/snapshot/records.h"

namespace vgpu::checkpoint {

namespace {

std::vector<ObjectRecord> loadRecords(const SnapshotReader& directory, const Manifest& manifest) {
  auto bytes = directory.readWhole(objectsFile, manifest.files.at(objectsFile), maxObjectsBytes);
  auto records = decoded(directory, objectsFile, [&] { return decodeRecords(bytes, barrierOf(manifest)); });
  if (records.size() != manifest.objectCount)
    directory.refuse(objectsFile,
                     fmt::format("count: {} objects are expected, {} are found", manifest.objectCount, records.size()));
  return records;
}

PendingCalls loadPendingCalls(const SnapshotReader& directory, const Manifest& manifest) {
  auto bytes = directory.readWhole(pendingCallsFile, manifest.files.at(pendingCallsFile), maxPendingCallsBytes);
  PendingCalls pending = decoded(directory, pendingCallsFile, [&] { return decodePendingCalls(bytes); });
  if (!std::ranges::equal(pending.rings, manifest.rings, std::equal_to<RingState>()))
    directory.refuse(pendingCallsFile, "position: its rings are at other positions than the manifest says");
  return pending;
}

// The images of the modules that will be made: nothing else in a snapshot may occupy the worker's memory.
std::set<uint64_t> imageNumbers(const std::vector<ObjectRecord>& records, const StateTables& state) {
  auto images = stub::imagesOfGroups(state.at(stub::moduleGroupKind.name));
  for (auto& record : records)
    for (auto& frame : record.recipe)
      if (frame.method == api::Method::moduleLoad)
        images.insert(api::FrameReader<api::Cuda::ModuleLoadParams>(frame.words).getBlob());
  return images;
}

// Allocates no memory: neither the manifest alone nor chunks of zeros may make us allocate any.
void reserveBlobs(stub::SessionState& on, const SnapshotReader& directory, const std::vector<SavedBlob>& blobs,
                  const std::set<uint64_t>& wanted, const SentAhead* ahead) {
  auto refuse = [&](const std::string& check) { directory.refuse(manifestFile, "blobs: " + check); };
  for (auto& blob : blobs) {
    if (!wanted.contains(blob.blob) || handleDevice(blob.blob) >= on.deviceCount())
      refuse(fmt::format("no module uses image {}", blob.blob));
    if (ahead != nullptr && ahead->images.contains({blob.blob, 0})) continue;
    if (CUresult error = on.of(handleDevice(blob.blob)).blobs.reserve(blob.blob, stub::Blob::Origin::snapshot, blob.bytes))
      refuse(fmt::format("image {} is listed twice or is empty, or the images are too large together: {}", blob.blob,
                         stub::nameOf(on.driver, error)));
  }
}

void loadBlobs(stub::SessionState& on, StagingRing& ring, const SavedChunks& saved, const std::vector<SavedBlob>& blobs,
               const Progress& progress) {
  auto plan = planOf(blobs);
  Phase phase(progress, "images", plan.bytes());
  requirePinned(saved, pinnedOf(saved, 0, plan));
  ChunkReading reading(ring, saved, 0, plan);
  reading.run(nullptr, [&](const Piece& piece, const std::byte* bytes) -> OnItsWay {
    uint64_t blob = blobs[piece.item].blob;
    auto& image = *on.of(handleDevice(blob)).blobs.find(blob);
    if (bytes == nullptr) image.appendZeros(piece.bytes);
    else image.append({bytes, piece.bytes});
    phase.advance(piece.bytes);
    return std::nullopt;
  });
}

void setClocks(stub::SessionState& on, const Manifest& manifest) {
  for (unsigned device = 0; device < manifest.devices.size(); ++device)
    (on.isUsed(device) ? on.select(device) : on.of(device)).eventTimes.setClock(manifest.devices[device].clock);
}

void requireSameArenas(const SnapshotReader& directory, const Manifest& manifest) {
  if (manifest.arenas == arenasOfThisBuild()) return;
  directory.refuse(manifestFile, "arenas: this build places the address ranges of the program's pointers elsewhere; resume the snapshot "
                                 "with the version that wrote it");
}

// How many slots the pieces that are read from files are worth (StagingRing::worth).
size_t filesOf(const std::vector<ChunkPlace>& places, const Manifest& manifest) {
  size_t chunk = 0, pieces = 0;
  uint64_t bytes = 0;
  for (auto plan : {planOf(manifest.blobs), planOf(manifest.state)})
    while (auto piece = plan.next()) {
      if (!isInFile(places[chunk++].form)) continue;
      ++pieces;
      bytes += piece->bytes;
    }
  return StagingRing::worth(pieces, bytes);
}

// Chunks that were sent ahead must have reached this worker: first those of images, of which either all or none are present, then those of
// memory.
void requireResident(const SnapshotReader& directory, std::vector<ChunkPlace>& places, const Manifest& manifest,
                     const SentAhead* ahead) {
  size_t chunk = 0;
  auto refuse = [&](const char* check) { directory.refuse(chunksFile, fmt::format("chunk {}: {}", chunk, check)); };
  auto refuseAbsent = [&] { refuse("a migration has sent it to another worker, so it is in no file"); };
  for (auto plan = planOf(manifest.blobs); auto piece = plan.next(); ++chunk) {
    auto& place = places[chunk];
    const Digest* there = nullptr;
    if (ahead != nullptr)
      if (auto found = ahead->images.find({manifest.blobs[piece->item].blob, piece->offset}); found != ahead->images.end())
        there = &found->second;
    if (there == nullptr && place.form == Form::resident) refuseAbsent();
    if (there != nullptr && *there != place.digest) refuse("a migration has sent a different one ahead");
    if (there != nullptr) place.form = Form::resident;
  }
  for (auto& piece : placesOf(manifest.state)) {
    auto& place = places[chunk];
    bool isThere = ahead != nullptr && piece && ahead->memory.has({piece->device, piece->address, piece->bytes, place.digest});
    if (place.form == Form::resident && !isThere) refuseAbsent();
    ++chunk;
  }
}

// Destroys what was sent ahead but is not in the snapshot.
void reduce(stub::SessionState& on, SentAhead& ahead, const Manifest& manifest, const std::vector<ObjectRecord>& records) {
  ahead.made.reduce(on, manifest.state, records);
  std::map<uint64_t, uint64_t> wanted;  // image number to bytes
  for (auto& blob : manifest.blobs) wanted[blob.blob] = blob.bytes;
  std::erase_if(ahead.images, [&](auto& image) {
    uint64_t number = image.first.first;
    auto& blobs = on.of(handleDevice(number)).blobs;
    auto* blob = blobs.find(number);
    if (blob != nullptr && wanted.contains(number) && wanted[number] == blob->bytes().size()) return false;
    blobs.drop(number);
    return true;
  });
}

Restored restoreQuiesced(stub::SessionState& on, const std::string& path, const Progress& progress, const RestoreFrom& from) {
  KJ_REQUIRE(on.isAttached(), "the program's memory must be attached before its snapshot is restored");
  PhaseClock clock;
  SnapshotReader directory(path);
  Manifest manifest = readManifest(directory);
  requireSameArenas(directory, manifest);
  requireSameMethods(manifest.methods, refusalOf(directory));
  requireKnownLibraryCalls(manifest.libraryCalls, refusalOf(directory));
  requireValid(directory, manifest);
  if (manifest.devices.size() > on.deviceCount())
    directory.refuse(manifestFile,
                     fmt::format("devices: the snapshot has {}, this worker has {}", manifest.devices.size(), on.deviceCount()));
  auto records = loadRecords(directory, manifest);
  adoptDevices(on, manifest.devices, records);
  stub::planLeases(on, records);
  stub::planModules(on, records);
  PendingCalls pending = loadPendingCalls(directory, manifest);
  auto output = directory.readWhole(outputFile, manifest.files.at(outputFile), stub::DeviceOutput::mostBytes);
  if (!from.memoryLater) requireSamePlace(pending, on.shared());

  if (from.ahead != nullptr) reduce(on, *from.ahead, manifest, records);
  reserveBlobs(on, directory, manifest.blobs, imageNumbers(records, manifest.state), from.ahead);
  auto store = storeOf(directory, manifest);
  auto places = loadChunks(directory, manifest);
  size_t first = planOf(manifest.blobs).count();
  requireResident(directory, places, manifest, from.ahead);
  if (from.room != nullptr)
    places = findPinned(*from.room, manifest.digestKey, std::move(places), {planOf(manifest.blobs), planOf(manifest.state)});
  SavedChunks saved = store ? SavedChunks(directory, std::move(places), *store, {planOf(manifest.blobs), planOf(manifest.state)})
                            : SavedChunks(directory, std::move(places), manifest.packs, manifest.digestKey);
  saved.room = from.room;
  compareOnGpus(on.driver, saved, first, manifest.state);
  clock.end("manifest");
  StagingRing ring(&on.driver, StagingRing::slotsFor(packsHere(), filesOf(saved.places, manifest)));
  clock.end("buffers");
  loadBlobs(on, ring, saved, manifest.blobs, progress);
  clock.end("images");
  std::optional<ChunkReading> reading;
  auto beginReading = [&] { reading.emplace(ring, saved, first, planOf(manifest.state)); };
  if (from.twin == nullptr) beginReading();  // starts early, while the objects are made
  runStep(on, manifest.state, &stub::KindModule::prepare);
  Phase objects(progress, "objects", bytesOf(records));
  rebuild(
      on, records, [&](size_t bytes) { objects.advance(bytes); },
      [&](const RecordedFrame& frame) { return from.ahead != nullptr && from.ahead->made.has(frame); });
  faultPoint("resume.recipes-replayed");
  clock.end("objects");
  runStep(on, manifest.state, &stub::KindModule::compare);
  uint64_t deviceBytes = bytesOf(manifest.state);
  if (deviceBytes != manifest.deviceBytes)
    directory.refuse(manifestFile, fmt::format("deviceBytes: {}, but its tables have {}", manifest.deviceBytes, deviceBytes));
  uint64_t twinBytes = 0;
  if (!reading) {
    twinBytes = takeFromTwin(on, *from.twin, saved, first, manifest.state);
    clock.end("twin");
    beginReading();
  }
  Phase memory(progress, "memory", deviceBytes);
  memory.advance(twinBytes);
  restoreBytes(on, ring, *reading, saved, first, manifest.state, [&](size_t count) { memory.advance(count); });
  clock.end("memory");
  setClocks(on, manifest);
  runStep(on, manifest.state, &stub::KindModule::restore);
  for (unsigned device : on.usedDevices()) on.select(device).gpu.leases.endUnclaimed();
  faultPoint("resume.bytes-restored");

  for (auto& ring : manifest.rings) on.of(static_cast<unsigned>(ring.device)).gpu.executed = ring.barrier;
  std::string printed(output.size(), 0);
  std::ranges::transform(output, printed.begin(), [](std::byte byte) { return std::to_integer<char>(byte); });
  on.output.load(std::move(printed));
  Report report{.deviceBytes = deviceBytes,
                .storedBytes = storedBytes(manifest),
                .objects = records.size(),
                .pendingCalls = pending.frameCount,
                .twinBytes = twinBytes};
  clock.end("state");
  report.phases = clock.take();
  return {std::move(report), std::move(pending)};
}

}  // namespace

Restored restore(stub::Worker& worker, const std::string& directory, const Progress& progress, const RestoreFrom& from) {
  Restored restored;
  worker.runQuiesced([&](stub::SessionState& on) { restored = restoreQuiesced(on, directory, progress, from); });
  return restored;
}

void requireMemory(stub::Worker& worker, const Restored& restored) {
  worker.runQuiesced([&](stub::SessionState& on) { requireSamePlace(restored.pending, on.shared()); });
}

Restored reclaim(stub::Worker& worker, const std::string& path) {
  SnapshotReader directory(path);
  Manifest manifest = readManifest(directory);
  PendingCalls pending = loadPendingCalls(directory, manifest);
  worker.runQuiesced([&](stub::SessionState& on) {
    requireSamePlace(pending, on.shared());
    for (auto& ring : manifest.rings)
      if (on.of(static_cast<unsigned>(ring.device)).gpu.executed != ring.barrier)
        directory.refuse(pendingCallsFile, "position: the worker is at a different one");
  });
  Report report{.deviceBytes = manifest.deviceBytes, .objects = manifest.objectCount, .pendingCalls = pending.frameCount};
  return {std::move(report), std::move(pending)};
}

void proceed(stub::Worker& worker, const Restored& restored) {
  worker.runQuiesced([&](stub::SessionState& on) {
    putBack(restored.pending, on.shared());
  });
  worker.proceed();
}

void readObjects(const std::string& directory, const std::function<void(ObjectRecord&&)>& visit) {
  SnapshotReader snapshot(directory);
  for (auto& record : loadRecords(snapshot, readManifest(snapshot))) visit(std::move(record));
}

}  // namespace vgpu::checkpoint
