#include "checkpoint/pinned-chunks.h"

#include <fmt/format.h>
#include <kj/debug.h>

#include <algorithm>
#include <atomic>

#include "vgpu/base/thread-group.h"
#include "stub/worker/execution.h"
#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"

namespace vgpu::checkpoint {

namespace {

// Calls `work` for each number below `count`, with several threads.
template <typename Work>
void forEach(size_t count, Work work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> stopped{false};
  auto run = [&] {
    for (size_t i; !stopped && (i = next.fetch_add(1)) < count;) work(i);
  };
  ThreadGroup threads([&] { stopped = true; });
  size_t others = std::min<size_t>(packsHere() - 1, count / chunksOfThread);
  threads.guard([&] {
    for (size_t thread = 0; thread < others; ++thread) threads.start(run);
    run();
  });
  threads.join();
}

std::vector<ChunkName> namesOf(const std::vector<NewPiece>& pieces) {
  std::vector<ChunkName> names;
  for (auto& one : pieces) names.push_back({one.digest.value_or(notDigested), one.piece.bytes});
  return names;
}

// Whether `next` follows `piece` immediately, both at the source and in the room.
bool isBehind(const Piece& piece, const PinnedPlace& place, const Piece& next, const PinnedPlace& nextPlace) {
  return nextPlace.state == PinnedPlace::State::room && piece.goesOnWith(next) && nextPlace.offset == place.offset + piece.bytes;
}

// Copies the pieces into their room, in the order of the plan.
void copyPieces(stub::SessionState* on, const std::vector<NewPiece>& pieces, const std::vector<PinnedPlace>& places,
                const ChunkSource& source) {
  KJ_ON_SCOPE_FAILURE(if (on != nullptr) on->synchronize());
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (places[i].state == PinnedPlace::State::there && source.found) source.found(pieces[i].piece.bytes);
    if (places[i].state != PinnedPlace::State::room) continue;
    Piece piece = pieces[i].piece;
    const PinnedPlace& place = places[i];
    bool isFlat = source.isFlat && source.isFlat(piece.item);
    while (isFlat && i + 1 < pieces.size() && isBehind(piece, place, pieces[i + 1].piece, places[i + 1]))
      piece.bytes += pieces[++i].piece.bytes;
    source.fill(piece, source.room->at(place.offset, piece.bytes).data());
    source.noteCopied(piece.bytes);
  }
  if (on != nullptr) stub::require(on->driver, on->synchronize(), "copying the device's memory");
}

}  // namespace

std::vector<NewPiece> pinPieces(stub::SessionState* on, ChunkSink& sink, std::vector<NewPiece> pieces,
                                const ChunkSource& source) {
  auto places = source.room->place(sink.key, namesOf(pieces), true);
  KJ_REQUIRE(places.size() == pieces.size(), "vgpud has sent positions of other chunks");
  source.endPhase("room");
  copyPieces(on, pieces, places, source);
  source.endPhase("copy");
  std::vector<std::optional<Digest>> digests;
  for (auto& one : pieces) digests.push_back(one.digest);
  forEach(pieces.size(), [&](size_t i) {
    if (!digests[i] && places[i].state != PinnedPlace::State::none)
      digests[i] = sink.digester(source.room->at(places[i].offset, pieces[i].piece.bytes));
  });
  std::vector<ChunkName> names;
  std::vector<uint64_t> offsets;
  std::vector<NewPiece> left;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (places[i].state == PinnedPlace::State::none) {
      left.push_back(pieces[i]);
      continue;
    }
    bool isNew = sink.addPinned(pieces[i].chunk, *digests[i], pieces[i].piece.bytes, pieces[i].digest.has_value());
    if (!isNew || places[i].state == PinnedPlace::State::there) continue;
    names.push_back({*digests[i], pieces[i].piece.bytes});
    offsets.push_back(places[i].offset);
  }
  faultPoint("suspend.pinned");
  source.room->name(sink.key, names, offsets);
  source.endPhase("names");
  return left;
}

std::vector<NewPiece> holdPieces(stub::SessionState* on, std::vector<NewPiece> pieces, const ChunkSource& source) {
  KJ_ON_SCOPE_FAILURE(if (on != nullptr) on->synchronize());
  std::vector<NewPiece> left;
  for (auto& one : pieces) {
    std::byte* out = source.hold(one);
    if (out == nullptr && source.keep && source.keep(one)) continue;
    if (out == nullptr && source.holdLast) out = source.holdLast(one);
    if (out != nullptr)
      source.fill(one.piece, out);
    else
      left.push_back(one);
  }
  if (on != nullptr) stub::require(on->driver, on->synchronize(), "copying the device's memory");
  return left;
}

std::vector<ChunkPlace> findPinned(const PinnedRoom& room, const DigestKey& key, std::vector<ChunkPlace> places,
                                   std::vector<ChunkPlan> plans) {
  std::vector<ChunkName> names;
  for (auto& plan : plans)
    while (auto piece = plan.next()) names.push_back({places[names.size()].digest, piece->bytes});
  auto found = room.place(key, names, false);
  KJ_REQUIRE(found.size() == names.size() && names.size() == places.size(), "vgpud has sent positions of other chunks");
  for (size_t i = 0; i < places.size(); ++i)
    if (places[i].form != Form::zero && found[i].state == PinnedPlace::State::there)
      places[i] = {.digest = places[i].digest, .offset = found[i].offset, .form = Form::pinned};
  return places;
}

std::span<const std::byte> pinnedBytes(const SavedChunks& saved, size_t chunk, size_t bytes) {
  return saved.room->at(saved.places[chunk].offset, bytes);
}

void refusePinned(size_t chunk) {
  fail(fmt::format("chunk {} in vgpud's pinned memory: its digest does not match; the memory was altered or damaged", chunk));
}

void requirePinned(const SavedChunks& saved, std::span<const PinnedPiece> pieces) {
  forEach(pieces.size(), [&](size_t i) {
    auto [chunk, bytes] = pieces[i];
    if (saved.digester(pinnedBytes(saved, chunk, bytes)) != saved.places[chunk].digest) refusePinned(chunk);
  });
}

std::vector<PinnedPiece> pinnedOf(const SavedChunks& saved, size_t first, ChunkPlan plan) {
  std::vector<PinnedPiece> pieces;
  for (size_t chunk = first; auto piece = plan.next(); ++chunk)
    if (saved.places[chunk].form == Form::pinned) pieces.push_back({chunk, piece->bytes});
  return pieces;
}

}  // namespace vgpu::checkpoint
