#include "checkpoint/live-snapshot.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <atomic>

#include "checkpoint/held-pool.h"
#include "checkpoint/live-images.h"
#include "checkpoint/progress.h"
#include "stub/worker/execution.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/base/sizes.h"
#include "vgpu/base/thread-group.h"

namespace vgpu::checkpoint {

namespace {

constexpr unsigned mostRounds = 5;
// Another round would take longer than holding the program for the copy of so much: 5 ms on a link of 50 GB/s.
constexpr uint64_t smallEnough = 256 * MiB;

}  // namespace

// A piece whose bytes are in host memory: this object's, or the daemon's.
struct LiveSnapshot::Held {
  size_t chunk;
  std::span<const std::byte> bytes;
  bool isDigested;
};

// A piece whose bytes are in spare memory of its GPU.
struct LiveSnapshot::Kept {
  size_t chunk;
  unsigned device;
  CUdeviceptr address;
  size_t bytes;
  bool isDigested;
};

LiveSnapshot::LiveSnapshot(const stub::Driver& driver, stub::Worker& worker, std::unique_ptr<SnapshotWriter> owned,
                           uint64_t mostPinned)
    : driver(driver),
      worker(worker),
      writer(std::move(owned)),
      chunks(*writer),
      context(driver, 0),
      live(driver, worker),
      mostPinned(mostPinned) {
  stub::require(driver, context.take(), "keeping a context");
}

LiveSnapshot::~LiveSnapshot() { context.select(); }  // unpinning needs the context

void LiveSnapshot::runRounds(const Progress& progress) {
  stub::require(driver, context.select(), "changing device");
  images = copyImages(*chunks.sink, [&](auto& work) { return live.visit(work); });
  uint64_t last = 0;
  for (unsigned round = 0; round < mostRounds; ++round) {
    std::vector<DevicePiece> changed;
    // The memory of a GPU that is never idle is digested only at the end; the first round needs no digests.
    if (!findChanged(changed, true) && (round > 0 || !findChanged(changed, false))) break;
    uint64_t bytes = bytesOf(changed);
    bool isEnough = round > 0 && (bytes <= smallEnough || bytes > last / 2);
    last = bytes;
    if (isEnough) break;
    copyChanged(changed, progress);
    ++report.rounds;
    report.roundBytes += bytes;
  }
  memory.emplace(driver, report.rounds == 1 ? HeldMemory::most : last, mostPinned);
  clock.end("rounds");
  faultPoint("snapshot.rounds-done");
}

// Returns false if there was no opportunity; `changed` is then unset.
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

void LiveSnapshot::capture(const std::string& objects, const Identity& identity, const Progress& progress,
                           const PinnedRoom* room) {
  HeldPool pool(room, chunks.sink->key);
  worker.runQuiesced([&](stub::SessionState& on) {
    clock.end("gate");
    captured = captureSession(on, objects, identity);
    chunks.sink->beginList();
    clock.end("objects");
    ChunkSource where{.clock = &clock};
    auto hold = [&](const NewPiece& one, std::span<std::byte> place) -> std::byte* {
      if (place.empty()) return nullptr;
      held.push_back({one.chunk, place, one.digest.has_value()});
      return place.data();
    };
    where.hold = [&](const NewPiece& one) {
      report.heldBytes += one.piece.bytes;
      return hold(one, memory->take(one.piece.bytes));
    };
    where.holdLast = [&](const NewPiece& one) { return hold(one, pool.take(one.piece.bytes)); };
    saveImages(on, *chunks.sink, where, images, captured.manifest.blobs, progress);
    Phase phase(progress, "memory", captured.manifest.deviceBytes);
    auto keepPiece = [&](const NewPiece& one, const DevicePiece& from) { return keep(on, one, from); };
    saveBytes(
        on, *chunks.sink, where, captured.manifest.state, [&](size_t bytes) { phase.advance(bytes); }, nullptr, keepPiece);
  });
  clock.end("held");
  faultPoint("snapshot.captured");
}

// In the stream that also copies what is read of the session.
bool LiveSnapshot::keep(stub::SessionState& on, const NewPiece& one, const DevicePiece& from) {
  auto& of = on.select(from.device);
  CUdeviceptr to = spare.try_emplace(from.device, driver, from.device).first->second.take(from.bytes);
  if (to == 0) return false;
  CUresult result = driver.cuMemcpyDtoDAsync_v2(to, from.address, from.bytes, of.gpu.progress.ownStream());
  stub::require(driver, result, "copying within the device's memory");
  kept.push_back({one.chunk, from.device, to, from.bytes, one.digest.has_value()});
  return true;
}

void LiveSnapshot::writeKept(Phase& phase) {
  auto copySlice = [&](std::span<Slot* const> slots) {
    for (Slot* slot : slots) {
      auto& one = kept[slot->chunk];
      auto& from = spare.at(one.device);
      from.select();
      stub::require(driver, driver.cuMemcpyDtoHAsync_v2(slot->memory, one.address, one.bytes, from.stream()),
                    "copying spare memory");
      slot->bytes = one.bytes;
    }
    for (auto& [device, from] : spare) {
      from.select();
      stub::require(driver, driver.cuStreamSynchronize(from.stream()), "copying spare memory");
    }
    for (Slot* slot : slots) phase.advance(slot->bytes);
  };
  copyInSlices(driver, kept.size(), chunks.sink->writers(), copySlice,
               [&](unsigned writer, size_t i, std::span<const std::byte> bytes) {
                 chunks.sink->add(writer, kept[i].chunk, bytes, kept[i].isDigested);
               });
  spare.clear();
  stub::require(driver, context.select(), "changing device");
}

void LiveSnapshot::writeHeld(Phase& phase) {
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
}

// Spare GPU memory is written and freed first, because the program may need it.
Report LiveSnapshot::finish(const Progress& progress) {
  clock.end("released");
  uint64_t bytes = 0;
  for (auto& one : held) bytes += one.bytes.size();
  for (auto& one : kept) bytes += one.bytes;
  Phase phase(progress, "writing", bytes);
  writeKept(phase);
  writeHeld(phase);
  clock.end("write");
  Report published = publish(captured, chunks, *writer, clock);
  published.rounds = report.rounds;
  published.roundBytes = report.roundBytes;
  published.heldBytes = report.heldBytes;
  published.copiedBytes = report.roundBytes + report.heldBytes;
  return published;
}

}  // namespace vgpu::checkpoint
