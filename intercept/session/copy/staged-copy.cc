#include "intercept/session/copy/staged-copy.h"

#include <array>
#include <chrono>
#include <cstring>
#include <optional>
#include <thread>

#include "intercept/session/cancellation.h"
#include "intercept/session/copy/frame.h"
#include "intercept/session/copy/thread-pool.h"
#include "intercept/session/wait.h"

namespace vgpu::client {

namespace {

// Tiles pending from the device at a time: one is copied out while the next ones arrive.
constexpr unsigned tilesInFlight = 4;

// Copies from this size on are long: each of several threads moves tiles of its own. For a shorter copy the tiles are moved one after the
// other, and the threads share each tile.
constexpr uint64_t longBytes = 8 * MiB;
constexpr uint64_t shortTile = 512 * KiB;

bool isLong(const Session& session, const BoxSize& size) {
  return size.bytes() >= longBytes && CopyThreadPool::size(session) != 0;
}

// In a stream that waits, a driver accepts many copies of at most `shortHeld` bytes, and `longHeld` longer ones (docs/facts.md).
constexpr uint64_t shortHeld = 64 * KiB;
constexpr unsigned longHeld = 2;
// The size of the pieces in which a tile without a slab is sent in frames.
constexpr uint64_t framePart = 32 * KiB;

// Sizes for sharing a tile of a short copy: the smallest tile to share, and the smallest part.
constexpr uint64_t leastShared = 256 * KiB, leastPart = 64 * KiB;

Tiling partsOf(const Session& session, const BoxSize& tile) {
  uint64_t bytes = tile.bytes(), each = roundUp(bytes / (CopyThreadPool::size(session) + 1), hostPageBytes);
  return {tile, 1, std::clamp(each, leastPart, bytes)};
}

// A copy in progress; its functions know which end is the source.
struct Staged {
  CopyEnd gpu, pageable;
  Tiling tiles;
  uint64_t stream;
  bool shared;  // whether threads move tiles of their own
  uint64_t bytes = 0;  // of all tiles, for a copy to the GPU

  bool isShort() const { return bytes <= shortHeld; }
  Slabs::User user(const Thread& thread) const { return Slabs::userOf(thread.deviceOf(stream), stream); }
  // The user for whom a slab to the GPU is lent: a stream's short copies do not count, except to arrays, which may get a kept slab.
  Slabs::User lender(const Thread& thread) const { return isShort() && !gpu.isArray() ? Slabs::worker : user(thread); }

  // Calls `move(memory, packed, bytes)` for all bytes of a tile, which are packed from `slab` on: on this thread alone, or also on the
  // thread pool's.
  template <typename Move>
  void moveTile(Thread& thread, const Tile& tile, std::byte* slab, Move move) const {
    const CopyEnd memory = pageable.at(tile);
    auto& [width, height, depth] = tile.size;
    auto movePart = [&](const Tile& part) {
      std::byte* packed = slab + (part.slice * height + part.row) * width + part.x;
      forRuns(memory.at(part), part.size,
              [&](std::byte* run, uint64_t offset, uint64_t bytes) { move(run, packed + offset, bytes); });
    };
    if (shared || tile.size.bytes() < leastShared || CopyThreadPool::size(thread.session) == 0) return movePart({0, 0, 0, tile.size});
    const Tiling parts = partsOf(thread.session, tile.size);
    thread.session.copyThreads->share(thread, parts.count(), [&](Thread&, uint64_t index) {
      movePart(parts[index]);
      return CUDA_SUCCESS;
    });
  }
};

// Takes a slab for bytes to the device. If none is free, a stream that has `longHeld` slabs waits for one to be given back, as natively;
// others go without one: the slabs' holders may wait for them. An array's bytes always wait for a slab (sendInFrames).
std::optional<uint32_t> takeSlabFor(Thread& thread, const Staged& copy) {
  Session& session = thread.session;
  if (copy.gpu.isArray()) return session.slabs.take(thread.firstSlab(), copy.user(thread), session.lost);
  for (Backoff backoff; !session.lost.load(std::memory_order_relaxed);) {
    if (auto slab = session.slabs.takeAnother(thread.firstSlab())) return slab;
    if (copy.isShort() || session.slabs.countLent(copy.user(thread)) < longHeld) return std::nullopt;
    if (!backoff.spin()) std::this_thread::sleep_for(std::chrono::nanoseconds(backoff.sleepNanoseconds()));
  }
  return std::nullopt;
}

// Sends a tile without a slab, in frames; stream-depth.h limits their bytes in a stream. Each frame is a row in GPU memory, whose bytes a
// driver copies at the call; for a box of pageable memory the driver might wait for the stream.
CUresult sendInFrames(Thread& thread, const Staged& copy, const Tile& tile) {
  if (copy.gpu.isArray()) return thread.session.lossResult();
  const CopyEnd gpu = copy.gpu.at(tile), memory = copy.pageable.at(tile);
  const Tiling parts(tile.size, 1, gpu.isPacked(tile.size) ? framePart : std::min(framePart, tile.size.width));
  for (uint64_t index = 0; index < parts.count(); ++index) {
    const Tile part = parts[index];
    if (CUresult error = copyInFrame(thread, gpu.at(part), memory.at(part), part.size, copy.stream)) return error;
  }
  return CUDA_SUCCESS;
}

CUresult sendTile(Thread& thread, const Staged& copy, const Tile& tile) {
  Session& session = thread.session;
  auto slab = takeSlabFor(thread, copy);
  if (!slab) return sendInFrames(thread, copy, tile);
  copy.moveTile(thread, tile, session.segment.slab(*slab),
                [](const std::byte* memory, std::byte* packed, uint64_t bytes) { std::memcpy(packed, memory, bytes); });
  return withCopy(thread, copy.gpu.at(tile), CopyEnd::slab(*slab), tile.size, copy.stream, nullptr, [&](auto& frame) {
    session.slabs.lend(*slab, frame.device(), frame.sequence(), copy.lender(thread));
    return frame.post();
  });
}

struct Requested {
  uint32_t slab;
  Tile tile;
  uint64_t sequence;
};

CUresult request(Thread& thread, Waiter& waiter, const Staged& copy, Requested& wanted) {
  const Tile& tile = wanted.tile;
  return withCopy(thread, CopyEnd::slab(wanted.slab), copy.gpu.at(tile), tile.size, copy.stream, &waiter, [&](auto& frame) {
    wanted.sequence = frame.sequence();
    return frame.send();
  });
}

// Fetches the tiles [first, end) on one thread. They are requested ahead and copied out in order; if slabs are scarce, one by one. After an
// error the copy ends when the pending tiles have arrived or failed.
CUresult fetchTiles(Thread& thread, const Staged& copy, uint64_t first, uint64_t end) {
  Session& session = thread.session;
  const unsigned device = thread.deviceOf(copy.stream);
  CancellationOff untilArrived;
  std::array<Requested, tilesInFlight> tiles;
  uint64_t asked = first, taken = first;
  CUresult result = CUDA_SUCCESS;
  bool isOver = false;  // no tile is pending
  Waiter waiter(thread, SlotTable::forWaits);
  if (!waiter.hasSlot()) return session.lossResult();
  while (taken < end && (result == CUDA_SUCCESS || taken < asked)) {
    while (result == CUDA_SUCCESS && asked < end && asked - taken < tilesInFlight) {
      auto slab = asked == taken ? session.slabs.take(thread.firstSlab(), copy.user(thread), session.lost)
                                 : session.slabs.takeAnother(thread.firstSlab());
      if (!slab && asked == taken) return session.lossResult();
      if (!slab) break;
      Requested& next = tiles[asked % tilesInFlight];
      next = {*slab, copy.tiles[asked], 0};
      ++asked;
      result = request(thread, waiter, copy, next);
    }
    const Requested& next = tiles[taken++ % tilesInFlight];
    CUresult arrived = isOver ? result : waiter.await(device, next.sequence);
    if (arrived == CUDA_SUCCESS && result == CUDA_SUCCESS) {
      copy.moveTile(thread, next.tile, session.segment.slab(next.slab),
                    [](std::byte* memory, const std::byte* packed, uint64_t bytes) { std::memcpy(memory, packed, bytes); });
    } else if (result == CUDA_SUCCESS) {
      result = arrived;
      // The worker may have refused a tile while the GPU still writes earlier ones: their slabs and the slot cannot be reused until it is
      // done. The slot's number is then that of the last tile that the GPU has written, which may be smaller than a refused tile's.
      synchronizeStream(thread, copy.stream);
      isOver = true;
    }
    session.slabs.give(next.slab);
  }
  return result;
}

}  // namespace

CUresult copyFromPageable(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t unit,
                          uint64_t stream) {
  const Staged copy{destination, source, {size, unit, slabBytes}, stream, isLong(thread.session, size), size.bytes()};
  const uint64_t count = copy.tiles.count();
  if (copy.shared)
    return thread.session.copyThreads->share(
        thread, count, [&](Thread& helper, uint64_t index) { return sendTile(helper, copy, copy.tiles[index]); });
  for (uint64_t index = 0; index < count; ++index)
    if (CUresult error = sendTile(thread, copy, copy.tiles[index])) return error;
  return CUDA_SUCCESS;
}

CUresult copyToPageable(Thread& thread, const CopyEnd& destination, const CopyEnd& source, const BoxSize& size, uint64_t unit,
                        uint64_t stream) {
  const bool shared = isLong(thread.session, size);
  const Staged copy{source, destination, {size, unit, shared ? slabBytes : shortTile}, stream, shared};
  const uint64_t count = copy.tiles.count(), threads = CopyThreadPool::size(thread.session) + 1;
  if (!shared) return fetchTiles(thread, copy, 0, count);
  // Enough parts for every thread, each long enough that its slabs overlap.
  const uint64_t part = std::clamp<uint64_t>((count + threads - 1) / threads, 2, tilesInFlight);
  return thread.session.copyThreads->share(thread, (count + part - 1) / part, [&](Thread& helper, uint64_t index) {
    return fetchTiles(helper, copy, index * part, std::min((index + 1) * part, count));
  });
}

}  // namespace vgpu::client
