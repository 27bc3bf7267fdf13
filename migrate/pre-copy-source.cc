#include "migrate/pre-copy-source.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>

#include "checkpoint/live-images.h"
#include "migrate/cut-over.h"
#include "migrate/objects-ahead.h"
#include "stub/worker/execution.h"
#include "stub/worker/kinds/kind.h"
#include "vgpu/base/sizes.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/snapshot/library-calls.h"
#include "vgpu/snapshot/methods.h"
#include "vgpu/wire/arena.h"

namespace vgpu::migrate {

using checkpoint::DevicePiece;
using checkpoint::Residence;

namespace {

using Clock = std::chrono::steady_clock;

double secondsSince(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::vector<stub::LeasedRange> leasesOf(stub::SessionState& on) {
  std::vector<stub::LeasedRange> leases;
  for (unsigned device : on.usedDevices())
    for (auto& lease : on.of(device).gpu.leases.ranges()) leases.push_back(lease);
  std::ranges::sort(leases);
  return leases;
}

// The snapshot state of modules with variables, up to the first module whose image has not been sent: a module's variables are placed after
// those of the modules before it, on any device if it shares some.
StateTables groupsOf(stub::SessionState& on, const checkpoint::ImageDigests& images) {
  StateTables groups;
  for (auto* kind : {&stub::moduleBlockKind, &stub::moduleGroupKind}) groups[kind->name] = kind->save(on);
  Rows& modules = groups[stub::moduleGroupKind.name];
  modules.erase(std::ranges::find_if(modules, [&](const Row& row) { return !images.contains({numberIn(row, 2), 0}); }), modules.end());
  return groups;
}

}  // namespace

// A piece whose bytes are in `memory`.
struct PreCopySource::Held {
  size_t chunk;
  DevicePiece piece;
  std::span<const std::byte> bytes;
};

PreCopySource::PreCopySource(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> sockets,
                             std::unique_ptr<snapshot::SnapshotWriter> owned, std::string objects)
    : driver(driver),
      worker(worker),
      writer(std::move(owned)),
      objects(std::move(objects)),
      chunks(*writer),
      context(driver, 0),
      live(driver, worker) {
  stub::require(driver, context.take(), "keeping a context");
  for (auto& socket : sockets) streams.push_back(std::make_unique<Stream>(kj::mv(socket)));
}

PreCopySource::~PreCopySource() { context.select(); }  // unpinning needs the context

void PreCopySource::cancel() {
  for (auto& stream : streams) stream->io.shutDown();
}

void PreCopySource::runRounds(double downtime, const Progress& progress) {
  stub::require(driver, context.select(), "changing device");
  CutOver cutOver(downtime);
  uint64_t bytes = 0;
  while (true) {
    uint64_t imageBytes = sendImages();
    sendObjects();
    auto pieces = live.digested(chunks.sink->digester);
    // The memory of a GPU that is never idle is digested only at the end; the very first round needs no digests.
    if (!pieces && report.rounds == 0) pieces = live.all();
    // After listing the pieces, so that every piece that still exists when it is copied has its lease noted.
    if (!pieces || !live.visit([&](stub::SessionState& on) { noteLeases(leasesOf(on)); })) break;
    auto changed = changedOf(std::move(*pieces));
    bytes = bytesOf(changed);
    if (cutOver.isDue(bytes + imageBytes)) break;
    auto start = Clock::now();
    sendRound(changed, cutOver.phase(), progress);
    cutOver.noteRound(bytes, secondsSince(start));
    ++report.rounds;
    report.roundBytes += bytes;
  }
  memory.emplace(driver, bytes);
}

// Returns the bytes of the images that could not be copied.
uint64_t PreCopySource::sendImages() {
  auto copied = checkpoint::copyNewImages([&](auto& work) { return live.visit(work); }, images,
                                          [&](uint64_t number, std::span<const std::byte> bytes) { sendImage(number, bytes); });
  report.roundBytes += copied.copiedBytes;
  return copied.leftBytes;
}

void PreCopySource::sendImage(uint64_t number, std::span<const std::byte> bytes) {
  auto& stream = streams[0]->io;
  const uint32_t device = handleDevice(number);
  stream.send({MessageKind::image, device, number, bytes.size(), {}});
  for (checkpoint::ChunkPlan plan({bytes.size()}); auto piece = plan.next();) {
    auto part = bytes.subspan(piece->offset, piece->bytes);
    auto digest = chunks.sink->digester(part);
    stream.send({MessageKind::piece, device, number, part.size(), digest}, part);
    images[{number, piece->offset}] = digest;
  }
}

// The object list is read before the cut is taken, so its frames have been executed unless they are pending. Reading a large list takes
// seconds: this is skipped if an earlier round has read the same commit, and left out no frame that may have been executed since.
void PreCopySource::sendObjects() {
  std::vector<ObjectRecord> records;
  uint64_t commit = 0;
  if (access((objects + "/objects/data.mdb").c_str(), F_OK) == 0) {
    if (listed == std::pair(commitNumber(objects), images.size())) return;
    commit = vgpu::readObjects(objects, [&](ObjectRecord&& record) { records.push_back(std::move(record)); });
  }
  RingCut executed;
  ObjectsAhead ahead{chunks.sink->key, {}, {}};
  bool isVisited = live.visit([&](stub::SessionState& on) {
    for (unsigned device = 0; device < on.deviceCount(); ++device) executed[device] = on.of(device).gpu.executed;
    ahead.tables.state = groupsOf(on, images);
  });
  if (!isVisited) return;
  listed = areExecuted(records, executed) ? std::pair(commit, images.size()) : std::pair(uint64_t{0}, size_t{0});
  ahead.records = worthMakingAhead(recordsAt(std::move(records), executed),
                                   [&](uint64_t image) { return images.contains({image, 0}); });
  snapshot::addMethods(ahead.tables.methods, ahead.records);
  snapshot::addLibraryCalls(ahead.tables.libraryCalls, ahead.records);
  auto message = encodeObjects(ahead);
  if (message == sentObjects || message.size() > mostObjectsAheadBytes) return;
  streams[0]->io.send({MessageKind::objects, 0, 0, message.size(), {}}, message);
  flush();
  sentObjects = std::move(message);
  aheadRecords.clear();
  for (auto& record : ahead.records) aheadRecords.insert(record.key());
}

// A lease that was freed or has changed its size must be announced again: the target then leases anew and loses the bytes that it had.
void PreCopySource::noteLeases(std::vector<stub::LeasedRange> now) {
  for (auto& lease : leases) {
    if (std::ranges::binary_search(now, lease)) continue;
    sent.remove(lease.device, lease.address, lease.bytes);
    for (auto& stream : streams) stream->leases.erase(lease.address);
  }
  leases = std::move(now);
}

// Only memory in the arenas: the target has no other memory yet.
std::vector<DevicePiece> PreCopySource::changedOf(std::vector<DevicePiece> pieces) const {
  std::erase_if(pieces, [&](const DevicePiece& piece) { return !inDeviceArenas(piece.address) || sent.has(piece); });
  return pieces;
}

void PreCopySource::sendRound(const std::vector<DevicePiece>& changed, const std::string& name, const Progress& progress) {
  checkpoint::Phase phase(progress, name.c_str(), bytesOf(changed));
  std::vector<std::optional<Digest>> digests(changed.size());
  live.copy(changed, static_cast<unsigned>(streams.size()), phase,
            [&](unsigned writer, size_t i, std::span<const std::byte> bytes) {
              digests[i] = send(*streams[writer], changed[i], bytes);
            });
  flush();
  for (size_t i = 0; i < changed.size(); ++i)
    if (digests[i]) sent.add(changed[i].device, changed[i].address, changed[i].bytes, *digests[i]);
}

// Returns the digest of the bytes as sent: they may have changed since they were digested.
Digest PreCopySource::send(Stream& stream, const DevicePiece& piece, std::span<const std::byte> bytes) {
  auto isAround = [&](const stub::LeasedRange& lease) {
    return lease.device == piece.device && lease.address <= piece.address && piece.address - lease.address < lease.bytes;
  };
  // An allocation may extend over several adjacent leases.
  for (auto lease = std::ranges::find_if(leases, isAround); lease != leases.end() && lease->address < piece.address + piece.bytes;
       ++lease)
    if (stream.leases.insert(lease->address).second)
      stream.io.send({MessageKind::lease, lease->device, lease->address, lease->bytes, {}});
  auto digest = chunks.sink->digester(bytes);
  bool isZero = snapshot::isZero(bytes);
  stream.io.send({isZero ? MessageKind::zeros : MessageKind::chunk, piece.device, piece.address, piece.bytes, digest},
                 isZero ? std::span<const std::byte>() : bytes);
  return digest;
}

void PreCopySource::flush() {
  ThreadGroup threads([this] { cancel(); });
  threads.guard([&] {
    for (auto& stream : streams) threads.start([&stream] { stream->io.flush(); });
  });
  threads.join();
}

std::byte* PreCopySource::hold(const checkpoint::NewPiece& piece) {
  report.heldBytes += piece.piece.bytes;
  auto place = inArena.find(piece.chunk);
  if (place == inArena.end()) return nullptr;  // it goes into a file
  auto room = memory->take(piece.piece.bytes);
  if (room.empty()) return nullptr;
  held.push_back({piece.chunk, place->second, room});
  return room.data();
}

checkpoint::Report PreCopySource::capture(const snapshot::Identity& identity, const Progress& progress) {
  PhaseClock clock;
  checkpoint::SessionCapture captured;
  worker.runQuiesced([&](stub::SessionState& on) {
    captured = checkpoint::captureSession(on, objects, identity);
    noteLeases(leasesOf(on));
    chunks.sink->beginList();
    clock.end("objects");
    checkpoint::ChunkSource where;
    where.hold = [&](const checkpoint::NewPiece& piece) { return hold(piece); };
    auto imageResidence = [](size_t, const checkpoint::Piece&, const std::optional<Digest>& digest) {
      return digest ? Residence::there : Residence::inFiles;
    };
    where.residence = imageResidence;
    checkpoint::saveImages(on, *chunks.sink, where, images, captured.manifest.blobs, progress);
    where.residence = nullptr;
    checkpoint::Phase phase(progress, "memory", captured.manifest.deviceBytes);
    auto residence = [&](size_t chunk, const DevicePiece& piece) {
      if (!inDeviceArenas(piece.address)) return Residence::inFiles;
      if (sent.has(piece)) return Residence::there;
      inArena[chunk] = piece;
      return Residence::missing;
    };
    checkpoint::saveBytes(
        on, *chunks.sink, where, captured.manifest.state, [&](size_t bytes) { phase.advance(bytes); }, residence);
  });
  clock.end("copy");
  sendHeld();
  clock.end("send");
  auto published = checkpoint::publish(captured, chunks, *writer, clock);
  published.rounds = report.rounds;
  published.roundBytes = report.roundBytes;
  published.heldBytes = report.heldBytes;
  published.copiedBytes = report.roundBytes + report.heldBytes;
  for (auto& record : captured.records) published.aheadObjects += aheadRecords.contains(record.key());
  return published;
}

void PreCopySource::sendHeld() {
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  ThreadGroup threads([&] {
    stopped = true;
    cancel();
  });
  auto sendAll = [&](Stream& stream) {
    for (size_t i; !stopped && (i = next.fetch_add(1)) < held.size();)
      chunks.sink->addResident(held[i].chunk, send(stream, held[i].piece, held[i].bytes));
    if (!stopped) stream.io.flush();
  };
  threads.guard([&] {
    for (auto& stream : streams) threads.start([&] { sendAll(*stream); });
  });
  threads.join();
}

}  // namespace vgpu::migrate
