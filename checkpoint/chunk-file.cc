#include "checkpoint/chunk-file.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <numeric>

#include "checkpoint/pinned-chunks.h"
#include "vgpu/base/thread-group.h"
#include "vgpu/base/work-queue.h"

namespace vgpu::checkpoint {

namespace {

// Enough copies that the link is busy while the thread handles the last one.
constexpr size_t mostOnTheirWay = 8;

std::span<const std::byte> bytesOf(const Slot& slot) { return {slot.memory, slot.bytes}; }

// The slots whose copies may be in flight, in order.
class InFlight {
 public:
  InFlight(Transfers* transfers, std::function<void(Slot*)> done) : transfers(transfers), done(std::move(done)) {}

  void add(Slot* slot, OnItsWay device) {
    if (device) transfers->mark(slot->number, *device);
    slots.push_back(slot);
    while (slots.size() > mostOnTheirWay) awaitOldest();
  }
  // Returns false if there is none.
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

namespace {

// The pieces that the sink does not know by their digests; has() has recorded those digests in the sink.
std::vector<NewPiece> unknownOf(ChunkSink& sink, ChunkPlan plan, const ChunkSource& source) {
  std::vector<NewPiece> unknown;
  for (size_t chunk = sink.reserve(plan.count()); auto piece = plan.next(); ++chunk) {
    auto digest = source.digest ? source.digest(*piece) : std::nullopt;
    auto residence = source.residence ? source.residence(chunk, *piece, digest) : Residence::inFiles;
    if (residence == Residence::there) sink.addResident(chunk, *digest);
    bool isNew = residence == Residence::missing ||
                 (residence == Residence::inFiles && (!digest || !sink.has(chunk, *digest, piece->bytes)));
    // The sink has no digest of a missing piece.
    if (isNew) unknown.push_back({*piece, chunk, residence == Residence::missing ? std::nullopt : digest});
    else if (source.found) source.found(piece->bytes);
  }
  return unknown;
}

unsigned threadsFor(size_t chunks, unsigned most) {
  return static_cast<unsigned>(std::clamp<size_t>(chunks / chunksOfThread, 1, most));
}

}  // namespace

void writeChunks(stub::SessionState* on, ChunkSink& sink, ChunkPlan plan, const ChunkSource& source) {
  auto unknown = unknownOf(sink, std::move(plan), source);
  source.endPhase("lookup");
  if (source.hold) unknown = holdPieces(on, std::move(unknown), source);
  if (source.room != nullptr) unknown = pinPieces(on, sink, std::move(unknown), source);
  if (unknown.empty()) return;
  uint64_t bytes = 0;
  for (auto& one : unknown) bytes += one.piece.bytes;
  const size_t chunks = StagingRing::worth(unknown.size(), bytes);
  unsigned writers = threadsFor(chunks, sink.writers());
  StagingRing ring(on != nullptr ? &on->driver : nullptr, StagingRing::slotsFor(writers, chunks));
  std::optional<Transfers> transfers;
  if (on != nullptr) transfers.emplace(*on, ring.all().size());
  WorkQueue<Slot*> unused, filled;
  ThreadGroup threads([&] {
    unused.stop();
    filled.stop();
  });
  for (auto& slot : ring.all()) unused.push(&slot);
  auto write = [&](unsigned writer) {
    while (auto slot = filled.pop()) {
      sink.add(writer, (*slot)->chunk, bytesOf(**slot), (*slot)->isDigested);
      unused.push(*slot);
    }
  };
  auto copy = [&] {
    InFlight inFlight(transfers ? &*transfers : nullptr, [&](Slot* slot) { filled.push(slot); });
    for (auto& [piece, chunk, digest] : unknown) {
      auto slot = unused.tryPop();
      while (!slot && inFlight.awaitOldest()) slot = unused.tryPop();
      if (!slot) slot = unused.pop();
      if (!slot) return;  // another thread has failed
      (*slot)->chunk = chunk;
      (*slot)->bytes = piece.bytes;
      (*slot)->isDigested = digest.has_value();
      inFlight.add(*slot, source.fill(piece, (*slot)->memory));
      source.noteCopied(piece.bytes);
    }
    while (inFlight.awaitOldest()) continue;
    filled.close();
  };
  threads.guard([&] {
    for (unsigned writer = 0; writer < writers; ++writer) threads.start([&, writer] { write(writer); });
    copy();
  });
  threads.join();
  source.endPhase("write");
}

void finishChunks(ChunkSink& sink) {
  ThreadGroup threads([] {});
  threads.guard([&] {
    for (unsigned writer = 0; writer < sink.writers(); ++writer) threads.start([&, writer] { sink.finish(writer); });
  });
  threads.join();
}

struct SavedChunks::Resolved {
  std::vector<ChunkPlace> places;
  std::vector<PackReader> packs;
};

SavedChunks::Resolved SavedChunks::resolve(const SnapshotReader& directory, std::vector<ChunkPlace> places, ChunkStore& store,
                                           std::vector<ChunkPlan> plans) {
  Resolved resolved{std::move(places), {}};
  std::map<uint64_t, uint16_t> numbers;  // pack number to index in `packs`
  size_t chunk = 0;
  for (auto& plan : plans)
    for (; auto piece = plan.next(); ++chunk) {
      ChunkPlace& place = resolved.places[chunk];
      if (place.form != Form::stored) continue;
      if (place.offset != piece->bytes) directory.refuse(chunksFile, fmt::format("chunk {}: its size differs", chunk));
      StoredChunk found = store.get({place.digest, piece->bytes});
      auto [pack, isNew] = numbers.emplace(found.pack, resolved.packs.size());
      if (isNew) resolved.packs.push_back(PackReader(store.path(), store.packPath(found.pack)));
      place = {place.digest, found.offset, found.bytes, pack->second, static_cast<Form>(found.form)};
      bool isSound = found.bytes > 0 && found.bytes <= packedMost() && (place.form == Form::plain || place.form == Form::zstd);
      if (!isSound || resolved.packs.size() > UINT16_MAX)
        directory.refuse(chunksFile, fmt::format("chunk {}: its position in the store {} is invalid", chunk, store.path()));
    }
  return resolved;
}

SavedChunks::SavedChunks(Resolved&& resolved, const DigestKey& key)
    : places(std::move(resolved.places)), packs(std::move(resolved.packs)), digester(key) {}

SavedChunks::SavedChunks(const SnapshotReader& directory, std::vector<ChunkPlace> places, ChunkStore& store,
                         std::vector<ChunkPlan> plans)
    : SavedChunks(resolve(directory, std::move(places), store, std::move(plans)), store.key()) {}

namespace {

[[noreturn]] void refuseChunk(const SavedChunks& saved, size_t chunk, const char* check) {
  saved.packs[saved.places[chunk].pack].refuse(fmt::format("chunk {}: {}; the file was altered or damaged", chunk, check));
}

}  // namespace

void refuseDigest(const SavedChunks& saved, size_t chunk) { refuseChunk(saved, chunk, "its digest does not match"); }

struct ChunkReading::State {
  State(StagingRing& ring, const SavedChunks& saved, size_t first, ChunkPlan plan)
      : saved(saved), first(first), plan(plan), toRead(std::move(plan)), arrived(ring.all().size()), threads([this] {
          unused.stop();
          arrived.stop();
        }) {
    for (auto& slot : ring.all()) unused.push(&slot);
  }

  // The next piece to read from a file, with its index among such pieces; nothing after the last.
  struct Wanted {
    size_t number, chunk, bytes;
  };
  std::optional<Wanted> next() {
    std::lock_guard lock(mutex);
    while (auto piece = toRead.next()) {
      size_t chunk = first + nextChunk++;
      Form form = saved.places[chunk].form;
      if (isInFile(form)) return Wanted{nextNumber++, chunk, piece->bytes};
    }
    return std::nullopt;
  }

  // A thread takes the next piece only when it has a slot. So the pieces between the first one not consumed and the last one being read
  // never outnumber the slots.
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
    auto refuse = [&](const char* check) { refuseChunk(saved, slot.chunk, check); };
    if (place.form == Form::plain) {
      if (place.bytes != slot.bytes) refuse("its size differs");
      pack.read(place.offset, chunk);
    } else {
      packed.resize(place.bytes);
      pack.read(place.offset, packed);
      if (!unpack(place.form, packed, chunk)) refuse("it cannot be decompressed");
    }
    bool isCompared = saved.whenCompared(slot.chunk) == SavedChunks::Compared::asRead;
    if (isCompared && saved.digester(chunk) != place.digest) refuseDigest(saved, slot.chunk);
  }

  void run(Transfers* transfers, const Take& take, const std::function<bool(size_t)>& isFlat) {
    InFlight inFlight(transfers, [&](Slot* slot) { unused.push(slot); });
    Stretch stretch{take, isFlat};
    for (size_t chunk = first; auto piece = plan.next(); ++chunk) {
      const Form form = saved.places[chunk].form;
      if (form == Form::resident) continue;
      if (form == Form::zero || form == Form::pinned) {
        stretch.add(*piece, form == Form::zero ? nullptr : pinnedBytes(saved, chunk, piece->bytes).data());
        continue;
      }
      stretch.end();
      auto slot = arrived.tryTake();
      while (!slot && inFlight.awaitOldest()) slot = arrived.tryTake();
      if (!slot) slot = arrived.take();
      if (!slot) return;  // another thread has failed
      inFlight.add(*slot, take(*piece, (*slot)->memory));
    }
    stretch.end();
    while (inFlight.awaitOldest()) continue;
    unused.close();
  }

  // Merges chunks of zeros, or chunks in pinned memory, that are adjacent both at their source and at their destination: one fill, or one
  // copy.
  struct Stretch {
    const Take& take;
    const std::function<bool(size_t)>& isFlat;
    Piece whole{};
    const std::byte* from = nullptr;

    void add(const Piece& piece, const std::byte* bytes) {
      if (goesOnWith(piece, bytes)) {
        whole.bytes += piece.bytes;
        return;
      }
      end();
      whole = piece;
      from = bytes;
    }
    void end() {
      if (whole.bytes > 0) take(whole, from);
      whole.bytes = 0;
    }
    bool goesOnWith(const Piece& piece, const std::byte* bytes) const {
      const std::byte* behind = from == nullptr ? nullptr : from + whole.bytes;
      return whole.bytes > 0 && whole.goesOnWith(piece) && bytes == behind && isFlat && isFlat(piece.item);
    }
  };

  const SavedChunks& saved;
  const size_t first;
  ChunkPlan plan;
  std::mutex mutex;  // guards the next three members
  ChunkPlan toRead;
  size_t nextChunk = 0, nextNumber = 0;
  WorkQueue<Slot*> unused;
  OrderedHandover<Slot*> arrived;
  ThreadGroup threads;  // destroyed first
};

ChunkReading::ChunkReading(StagingRing& ring, const SavedChunks& saved, size_t first, ChunkPlan plan)
    : state(std::make_unique<State>(ring, saved, first, std::move(plan))) {
  for (size_t thread = 0; thread < packsHere(); ++thread) state->threads.start([this] { state->read(); });
}
ChunkReading::~ChunkReading() = default;

void ChunkReading::run(Transfers* transfers, const Take& take, const std::function<bool(size_t)>& isFlat) {
  state->threads.guard([&] { state->run(transfers, take, isFlat); });
  state->threads.join();
}

}  // namespace vgpu::checkpoint
