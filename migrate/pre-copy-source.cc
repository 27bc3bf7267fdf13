#include "migrate/pre-copy-source.h"

#include <algorithm>
#include <atomic>
#include <chrono>

#include "checkpoint/live-images.h"
#include "migrate/cut-over.h"
#include "stub/worker/execution.h"
#include "vgpu/base/sizes.h"
#include "vgpu/base/thread-group.h"
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

}  // namespace

// A piece whose bytes are in `memory`.
struct PreCopySource::Held {
  size_t chunk;
  DevicePiece piece;
  std::span<const std::byte> bytes;
};

PreCopySource::PreCopySource(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> sockets,
                             std::unique_ptr<snapshot::SnapshotWriter> owned)
    : driver(driver), worker(worker), writer(std::move(owned)), chunks(*writer), context(driver, 0), live(driver, worker) {
  stub::require(driver, context.take(), "keeping a context");
  for (auto& socket : sockets) streams.push_back(std::make_unique<Stream>(kj::mv(socket)));
}

PreCopySource::~PreCopySource() { context.select(); }  // for what is unpinned

void PreCopySource::cancel() {
  for (auto& stream : streams) stream->io.shutDown();
}

void PreCopySource::runRounds(double downtime, const Progress& progress) {
  stub::require(driver, context.select(), "changing device");
  CutOver cutOver(downtime);
  uint64_t bytes = 0;
  while (true) {
    auto ahead = checkpoint::copyNewImages(
        *chunks.sink, [&](auto& work) { return live.visit(work); }, images);
    report.roundBytes += ahead.copiedBytes;
    auto pieces = live.digested(chunks.sink->digester);
    // A GPU that is never idle is digested in the end only; the first round of all needs no digests.
    if (!pieces && report.rounds == 0) pieces = live.all();
    // After the pieces: so it has the lease of each that is still there when it is copied.
    if (!pieces || !live.visit([&](stub::SessionState& on) { noteLeases(leasesOf(on)); })) break;
    auto changed = changedOf(std::move(*pieces));
    bytes = bytesOf(changed);
    if (cutOver.isDue(bytes + ahead.leftBytes)) break;
    auto start = Clock::now();
    sendRound(changed, cutOver.phase(), progress);
    cutOver.noteRound(bytes, secondsSince(start));
    ++report.rounds;
    report.roundBytes += bytes;
  }
  memory.emplace(driver, bytes);
}

// A lease that has ended, or has another size now, must be named again: where the target then leases anew, it loses the bytes.
void PreCopySource::noteLeases(std::vector<stub::LeasedRange> now) {
  for (auto& lease : leases) {
    if (std::ranges::binary_search(now, lease)) continue;
    sent.remove(lease.device, lease.address, lease.bytes);
    for (auto& stream : streams) stream->leases.erase(lease.address);
  }
  leases = std::move(now);
}

// Of what lies in the arenas: the target has no other memory yet.
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

// Of the bytes as they are sent: they may have changed since they were digested.
Digest PreCopySource::send(Stream& stream, const DevicePiece& piece, std::span<const std::byte> bytes) {
  auto isAround = [&](const stub::LeasedRange& lease) {
    return lease.device == piece.device && lease.address <= piece.address && piece.address - lease.address < lease.bytes;
  };
  // An allocation may lie in several that touch each other.
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
  if (place == inArena.end()) return nullptr;  // into a file
  auto room = memory->take(piece.piece.bytes);
  if (room.empty()) return nullptr;
  held.push_back({piece.chunk, place->second, room});
  return room.data();
}

checkpoint::Report PreCopySource::capture(const std::string& objects, const snapshot::Identity& identity,
                                          const Progress& progress) {
  PhaseClock clock;
  checkpoint::SessionCapture captured;
  worker.runQuiesced([&](stub::SessionState& on) {
    captured = checkpoint::captureSession(on, objects, identity);
    noteLeases(leasesOf(on));
    chunks.sink->beginList();
    clock.end("objects");
    checkpoint::ChunkSource where;
    where.hold = [&](const checkpoint::NewPiece& piece) { return hold(piece); };
    checkpoint::saveImages(on, *chunks.sink, where, images, captured.manifest.blobs, progress);
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
