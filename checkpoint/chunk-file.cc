#include "checkpoint/chunk-file.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>

#include "checkpoint/thread-group.h"
#include "checkpoint/work-queue.h"

namespace vgpu::checkpoint {

namespace {

// Enough that the link has the next while the thread sees to the last.
constexpr size_t mostOnTheirWay = 8;

std::span<const std::byte> bytesOf(const Slot& slot) { return {slot.memory, slot.bytes}; }

// The slots whose copies may be on their way, in order.
class InFlight {
 public:
  InFlight(Transfers* transfers, std::function<void(Slot*)> done) : transfers(transfers), done(std::move(done)) {}

  void add(Slot* slot, OnItsWay device) {
    if (device) transfers->mark(slot->number, *device);
    slots.push_back(slot);
    while (slots.size() > mostOnTheirWay) awaitOldest();
  }
  // False if there is none.
  bool awaitOldest() {
    if (slots.empty()) return false;
    Slot* slot = slots.front();
    if (transfers != nullptr) transfers->await(slot->number);
    slots.pop_front();
    done(slot);
    return true;
  }

 private:
  Transfers* transfers;
  std::function<void(Slot*)> done;
  std::deque<Slot*> slots;
};

}  // namespace

std::optional<Piece> ChunkPlan::next() {
  while (item < sizes.size() && offset == sizes[item]) {
    ++item;
    offset = 0;
  }
  if (item == sizes.size()) return std::nullopt;
  Piece piece{item, offset, static_cast<size_t>(std::min<uint64_t>(chunkBytes, sizes[item] - offset))};
  offset += piece.bytes;
  return piece;
}

size_t ChunkPlan::count() const {
  size_t pieces = 0;
  for (uint64_t size : sizes) pieces += (size + chunkBytes - 1) / chunkBytes;
  return pieces;
}

uint64_t ChunkPlan::bytes() const { return std::accumulate(sizes.begin(), sizes.end(), uint64_t{0}); }

ChunkPlan planOf(const std::vector<SavedBlob>& blobs) {
  std::vector<uint64_t> sizes;
  for (auto& blob : blobs) sizes.push_back(blob.bytes);
  return ChunkPlan(std::move(sizes));
}

void writeChunks(StagingRing& ring, ChunkSink& sink, ChunkPlan plan, const ChunkSource& source) {
  WorkQueue<Slot*> unused, filled;
  ThreadGroup threads([&] {
    unused.stop();
    filled.stop();
  });
  for (auto& slot : ring.all()) unused.push(&slot);
  size_t chunk = sink.reserve(plan.count());
  auto write = [&](unsigned writer) {
    while (auto slot = filled.pop()) {
      sink.add(writer, (*slot)->chunk, bytesOf(**slot), (*slot)->isDigested);
      unused.push(*slot);
    }
  };
  auto copy = [&] {
    InFlight inFlight(source.transfers, [&](Slot* slot) { filled.push(slot); });
    for (; auto piece = plan.next(); ++chunk) {
      auto digest = source.digest ? source.digest(*piece) : std::nullopt;
      if (digest && sink.has(chunk, *digest, piece->bytes)) continue;
      auto slot = unused.tryPop();
      while (!slot && inFlight.awaitOldest()) slot = unused.tryPop();
      if (!slot) slot = unused.pop();
      if (!slot) return;  // another thread has failed
      (*slot)->chunk = chunk;
      (*slot)->bytes = piece->bytes;
      (*slot)->isDigested = digest.has_value();
      inFlight.add(*slot, source.fill(*piece, (*slot)->memory));
    }
    while (inFlight.awaitOldest()) continue;
    filled.close();
  };
  threads.guard([&] {
    for (unsigned writer = 0; writer < sink.writers(); ++writer) threads.start([&, writer] { write(writer); });
    copy();
  });
  threads.join();
}

void finishChunks(ChunkSink& sink) {
  ThreadGroup threads([] {});
  threads.guard([&] {
    for (unsigned writer = 0; writer < sink.writers(); ++writer) threads.start([&, writer] { sink.finish(writer); });
  });
  threads.join();
}

struct ChunkReading::State {
  State(StagingRing& ring, const SavedChunks& saved, size_t first, ChunkPlan plan)
      : saved(saved), first(first), plan(plan), toRead(std::move(plan)), arrived(ring.all().size()), threads([this] {
          unused.stop();
          arrived.stop();
        }) {
    for (auto& slot : ring.all()) unused.push(&slot);
  }

  // The next piece that is not of zeros, with its number among those. Nothing behind the last.
  struct Wanted {
    size_t number, chunk, bytes;
  };
  std::optional<Wanted> next() {
    std::lock_guard lock(mutex);
    while (auto piece = toRead.next()) {
      size_t chunk = first + nextChunk++;
      if (saved.places[chunk].form != Form::zero) return Wanted{nextNumber++, chunk, piece->bytes};
    }
    return std::nullopt;
  }

  // Whoever has a slot asks for a piece, so the pieces between the first that was not taken and the last one that somebody reads are
  // no more than slots.
  void read() {
    std::vector<std::byte> packed;
    while (auto slot = unused.pop()) {
      auto wanted = next();
      if (!wanted) return;
      (*slot)->chunk = wanted->chunk;
      (*slot)->bytes = wanted->bytes;
      readChunk(saved.places[wanted->chunk], **slot, packed);
      arrived.give(wanted->number, *slot);
    }
  }

  void readChunk(const ChunkPlace& place, const Slot& slot, std::vector<std::byte>& packed) {
    auto& pack = saved.packs[place.pack];
    std::span<std::byte> chunk(slot.memory, slot.bytes);
    auto refuse = [&](const char* check) {
      pack.refuse(fmt::format("chunk {}: {}; the file was altered or damaged", slot.chunk, check));
    };
    if (place.form == Form::plain) {
      if (place.bytes != slot.bytes) refuse("its size differs");
      pack.read(place.offset, chunk);
    } else {
      packed.resize(place.bytes);
      pack.read(place.offset, packed);
      if (!unpack(place.form, packed, chunk)) refuse("it does not decompress");
    }
    if (saved.digester(chunk) != place.digest) refuse("its digest differs");
  }

  void run(Transfers* transfers, const std::function<OnItsWay(const Piece&, const std::byte*)>& take) {
    InFlight inFlight(transfers, [&](Slot* slot) { unused.push(slot); });
    for (size_t chunk = first; auto piece = plan.next(); ++chunk) {
      if (saved.places[chunk].form == Form::zero) {
        take(*piece, nullptr);
        continue;
      }
      auto slot = arrived.tryTake();
      while (!slot && inFlight.awaitOldest()) slot = arrived.tryTake();
      if (!slot) slot = arrived.take();
      if (!slot) return;  // another thread has failed
      inFlight.add(*slot, take(*piece, (*slot)->memory));
    }
    while (inFlight.awaitOldest()) continue;
    unused.close();
  }

  const SavedChunks& saved;
  const size_t first;
  ChunkPlan plan;
  std::mutex mutex;  // guards the next three
  ChunkPlan toRead;
  size_t nextChunk = 0, nextNumber = 0;
  WorkQueue<Slot*> unused;
  OrderedHandover<Slot*> arrived;
  ThreadGroup threads;  // ends first
};

ChunkReading::ChunkReading(StagingRing& ring, const SavedChunks& saved, size_t first, ChunkPlan plan)
    : state(std::make_unique<State>(ring, saved, first, std::move(plan))) {
  for (size_t thread = 0; thread < packsHere(); ++thread) state->threads.start([this] { state->read(); });
}
ChunkReading::~ChunkReading() = default;

void ChunkReading::run(Transfers* transfers, const std::function<OnItsWay(const Piece&, const std::byte*)>& take) {
  state->threads.guard([&] { state->run(transfers, take); });
  state->threads.join();
}

}  // namespace vgpu::checkpoint
