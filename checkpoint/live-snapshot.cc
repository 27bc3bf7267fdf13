#include "checkpoint/live-snapshot.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <atomic>

#include "checkpoint/live-images.h"
#include "checkpoint/progress.h"
#include "stub/worker/execution.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/base/sizes.h"

namespace vgpu::checkpoint {

namespace {

constexpr unsigned mostRounds = 5;
// Another round would take longer than to hold the program for so much: 5 ms on a link of 50 GB/s.
constexpr uint64_t smallEnough = 256 * MiB;

}  // namespace

// A piece whose bytes are in `memory`.
struct LiveSnapshot::Held {
  size_t chunk;
  std::span<const std::byte> bytes;
  bool isDigested;
};

LiveSnapshot::LiveSnapshot(const stub::Driver& driver, stub::Worker& worker, std::unique_ptr<SnapshotWriter> owned)
    : driver(driver), worker(worker), writer(std::move(owned)), chunks(*writer), context(driver, 0), live(driver, worker) {
  stub::require(driver, context.take(), "keeping a context");
}

LiveSnapshot::~LiveSnapshot() { context.select(); }  // for what is unpinned

void LiveSnapshot::runRounds(const Progress& progress) {
  stub::require(driver, context.select(), "changing device");
  images = copyImages(*chunks.sink, [&](auto& work) { return live.visit(work); });
  uint64_t last = 0;
  for (unsigned round = 0; round < mostRounds; ++round) {
    std::vector<DevicePiece> changed;
    // A GPU that is never idle is digested in the end only; the first round needs no digests.
    if (!findChanged(changed, true) && (round > 0 || !findChanged(changed, false))) break;
    uint64_t bytes = bytesOf(changed);
    bool isEnough = round > 0 && (bytes <= smallEnough || bytes > last / 2);
    last = bytes;
    if (isEnough) break;
    copyChanged(changed, progress);
    ++report.rounds;
    report.roundBytes += bytes;
  }
  memory.emplace(driver, report.rounds == 1 ? HeldMemory::most : last);
  clock.end("rounds");
  faultPoint("snapshot.rounds-done");
}

// False if there was no occasion: nothing is known then.
bool LiveSnapshot::findChanged(std::vector<DevicePiece>& changed, bool mustBeIdle) {
  auto pieces = mustBeIdle ? live.digested(chunks.sink->digester) : live.all();
  if (!pieces) return false;
  for (auto& piece : *pieces)
    if (!piece.digest || !chunks.sink->knows(*piece.digest, piece.bytes)) changed.push_back(piece);
  return true;
}

void LiveSnapshot::copyChanged(const std::vector<DevicePiece>& changed, const Progress& progress) {
  Phase phase(progress, "copying while it runs", bytesOf(changed));
  size_t base = chunks.sink->reserve(changed.size());
  live.copy(changed, chunks.sink->writers(), phase, [&](unsigned writer, size_t i, std::span<const std::byte> bytes) {
    chunks.sink->add(writer, base + i, bytes);
  });
}

void LiveSnapshot::capture(const std::string& objects, const Identity& identity, const Progress& progress) {
  worker.runQuiesced([&](stub::SessionState& on) {
    clock.end("gate");
    captured = captureSession(on, objects, identity);
    chunks.sink->beginList();
    clock.end("objects");
    ChunkSource where{.clock = &clock};
    where.hold = [&](const NewPiece& piece) -> std::byte* {
      report.heldBytes += piece.piece.bytes;
      auto room = memory->take(piece.piece.bytes);
      if (room.empty()) return nullptr;
      held.push_back({piece.chunk, room, piece.digest.has_value()});
      return room.data();
    };
    saveImages(on, *chunks.sink, where, images, captured.manifest.blobs, progress);
    Phase phase(progress, "memory", captured.manifest.deviceBytes);
    saveBytes(on, *chunks.sink, where, captured.manifest.state, [&](size_t bytes) { phase.advance(bytes); });
  });
  clock.end("held");
  faultPoint("snapshot.captured");
}

Report LiveSnapshot::finish(const Progress& progress) {
  clock.end("released");
  uint64_t bytes = 0;
  for (auto& one : held) bytes += one.bytes.size();
  Phase phase(progress, "writing", bytes);
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  ThreadGroup threads([&] { stopped = true; });
  auto write = [&](unsigned writer) {
    for (size_t i; !stopped && (i = next.fetch_add(1)) < held.size();) {
      chunks.sink->add(writer, held[i].chunk, held[i].bytes, held[i].isDigested);
      if (writer == 0) phase.advance(held[i].bytes.size());
    }
  };
  threads.guard([&] {
    for (unsigned writer = 1; writer < std::min<size_t>(chunks.sink->writers(), held.size()); ++writer)
      threads.start([&, writer] { write(writer); });
    write(0);
  });
  threads.join();
  clock.end("write");
  Report published = publish(captured, chunks, *writer, clock);
  published.rounds = report.rounds;
  published.roundBytes = report.roundBytes;
  published.heldBytes = report.heldBytes;
  published.copiedBytes = report.roundBytes + report.heldBytes;
  return published;
}

}  // namespace vgpu::checkpoint
