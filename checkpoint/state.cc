#include "checkpoint/state.h"

#include "checkpoint/memory-digests.h"
#include "checkpoint/pinned-chunks.h"

#include <fmt/format.h>

#include <algorithm>
#include <ranges>
#include <string_view>

#include "stub/worker/execution.h"
#include "vgpu/base/fail.h"

namespace vgpu::checkpoint {

namespace {

using stub::KindModule;

// Calls `visit(kind, rows)` for each kind that has state.
template <typename Visit>
void forTables(const StateTables& state, Visit visit) {
  for (const KindModule* kind : stub::kinds())
    if (auto table = state.find(kind->name); table != state.end()) visit(*kind, table->second);
}

// A row whose bytes are saved: an item of the plan.
struct Item {
  const KindModule* kind;
  const Row* row;
};

std::vector<Item> itemsOf(const StateTables& state) {
  std::vector<Item> items;
  forTables(state, [&](const KindModule& kind, const Rows& rows) {
    if (kind.bytes == nullptr) return;
    for (auto& row : rows)
      if (kind.bytes(row) > 0) items.push_back({&kind, &row});
  });
  return items;
}

bool isFlat(const Item& item) { return item.kind->address != nullptr; }

std::optional<MemoryDigests::Place> placeOf(const Item& item) {
  if (!isFlat(item)) return std::nullopt;
  return MemoryDigests::Place{item.kind->device(*item.row), item.kind->address(*item.row)};
}

void digestAll(MemoryDigests& digests, const std::vector<Item>& items) {
  for (auto& item : items) digests.add(placeOf(item), item.kind->bytes(*item.row));
  digests.finish();
}

// Call it when a piece's copies have begun.
OnItsWay deviceOf(stub::SessionState& on, const Item& item) {
  if (item.kind->device != nullptr) return item.kind->device(*item.row);
  stub::require(on.driver, on.synchronize(), "copying the device's memory");
  return std::nullopt;
}

}  // namespace

StateTables saveState(stub::SessionState& on) {
  StateTables state;
  for (const KindModule* kind : stub::kinds())
    if (kind->save != nullptr) state[kind->name] = kind->save(on);
  return state;
}

void requireValid(const StateTables& state, size_t devices, const Refusal& refuse) {
  for (auto& [name, rows] : state) {
    auto known = std::ranges::find_if(stub::kinds(), [&](auto* kind) { return kind->name == name && kind->save != nullptr; });
    if (known == stub::kinds().end()) refuse(fmt::format("state {}: this build does not know this kind of objects", name));
    for (size_t i = 0; i < rows.size(); ++i)
      if (!hasColumns(rows[i], (*known)->columns) || !(*known)->isValid(rows[i], devices))
        refuse(fmt::format("state {}: row {} is invalid", name, i));
  }
}

void requireValid(const SnapshotReader& directory, const Manifest& manifest) {
  requireValid(manifest.state, manifest.devices.size(), refusalOf(directory));
  for (const KindModule* kind : stub::kinds())
    if (kind->save != nullptr && !manifest.state.contains(kind->name))
      directory.refuse(manifestFile, fmt::format("state {} is missing", kind->name));
}

void runStep(stub::SessionState& on, const StateTables& state, RestoreStep step) {
  forTables(state, [&](const KindModule& kind, const Rows& rows) {
    if (kind.*step != nullptr) (kind.*step)(on, rows);
  });
}

uint64_t bytesOf(const StateTables& state) {
  uint64_t bytes = 0;
  for (auto& item : itemsOf(state)) bytes += item.kind->bytes(*item.row);
  return bytes;
}

ChunkPlan planOf(const StateTables& state) {
  std::vector<uint64_t> sizes;
  for (auto& item : itemsOf(state)) sizes.push_back(item.kind->bytes(*item.row));
  return ChunkPlan(std::move(sizes));
}

std::vector<DevicePiece> devicePieces(stub::SessionState& on, const Digester* digester) {
  StateTables state;
  for (const KindModule* kind : stub::kinds())
    if (kind->save != nullptr && kind->address != nullptr) state[kind->name] = kind->save(on);
  auto items = itemsOf(state);
  std::optional<MemoryDigests> digests;
  if (digester != nullptr) {
    digests.emplace(on, *digester, bytesOf(state));
    digestAll(*digests, items);
  }
  std::vector<DevicePiece> pieces;
  for (auto plan = planOf(state); auto piece = plan.next();) {
    auto place = *placeOf(items[piece->item]);
    pieces.push_back({place.device, place.address + piece->offset, piece->bytes, digests ? digests->of(*piece) : std::nullopt});
  }
  return pieces;
}

std::vector<std::optional<DevicePiece>> placesOf(const StateTables& state) {
  std::vector<std::optional<DevicePiece>> pieces;
  auto items = itemsOf(state);
  for (auto plan = planOf(state); auto piece = plan.next();) {
    auto place = placeOf(items[piece->item]);
    pieces.push_back(!place ? std::nullopt
                            : std::optional(DevicePiece{place->device, place->address + piece->offset, piece->bytes, {}}));
  }
  return pieces;
}

void saveBytes(stub::SessionState& on, ChunkSink& sink, ChunkSource where, const StateTables& state, const Moved& moved,
               const ResidenceOf& residence, const KeepPiece& keep) {
  auto items = itemsOf(state);
  MemoryDigests digests(on, sink.digester, bytesOf(state));
  digestAll(digests, items);
  where.endPhase("digests");
  where.isFlat = [&](size_t item) { return isFlat(items[item]); };
  where.fill = [&](const Piece& piece, std::byte* out) {
    auto& item = items[piece.item];
    item.kind->read(on, *item.row, piece.offset, out, piece.bytes);
    moved(piece.bytes);
    return deviceOf(on, item);
  };
  where.digest = [&](const Piece& piece) { return digests.of(piece); };
  where.found = moved;
  if (residence)
    where.residence = [&](size_t chunk, const Piece& piece, const std::optional<Digest>& digest) {
      auto place = placeOf(items[piece.item]);
      return place ? residence(chunk, {place->device, place->address + piece.offset, piece.bytes, digest}) : Residence::inFiles;
    };
  if (keep)
    where.keep = [&](const NewPiece& one) {
      auto place = placeOf(items[one.piece.item]);
      if (!place || !keep(one, {place->device, place->address + one.piece.offset, one.piece.bytes, one.digest})) return false;
      moved(one.piece.bytes);
      return true;
    };
  writeChunks(&on, sink, planOf(state), where);
}

namespace {

Digest digestHere(stub::SessionState& on, const Digester& digester, const Item& item, const Piece& piece) {
  std::vector<std::byte> bytes(piece.bytes);
  item.kind->read(on, *item.row, piece.offset, bytes.data(), bytes.size());
  stub::require(on.driver, on.synchronize(), "copying the device's memory");
  return digester(bytes);
}

// Verifies the chunks that were not verified as they were read: on the device where possible, else in pinned memory.
void requireDigests(stub::SessionState& on, const SavedChunks& saved, size_t first, const StateTables& state) {
  auto isCompared = [&](size_t chunk) {
    const Form form = saved.places[chunk].form;
    const auto when = saved.whenCompared(chunk);
    if (when == SavedChunks::Compared::already) return false;
    return form == Form::pinned || form == Form::resident || (isInFile(form) && when == SavedChunks::Compared::onDevice);
  };
  if (std::ranges::none_of(std::views::iota(first, saved.places.size()), isCompared)) return;
  auto items = itemsOf(state);
  MemoryDigests digests(on, saved.digester, bytesOf(state));
  digestAll(digests, items);
  std::vector<PinnedPiece> others;
  auto plan = planOf(state);
  for (size_t chunk = first; auto piece = plan.next(); ++chunk) {
    if (!isCompared(chunk)) continue;
    Form form = saved.places[chunk].form;
    auto digest = digests.of(*piece);
    if (!digest && form != Form::pinned) digest = digestHere(on, saved.digester, items[piece->item], *piece);
    if (digest && *digest == saved.places[chunk].digest) continue;
    if (form == Form::resident)
      fail(fmt::format("chunk {}, which was sent ahead: its digest does not match; it was altered or damaged on its way", chunk));
    if (isInFile(form)) refuseDigest(saved, chunk);
    if (digest) refusePinned(chunk);
    others.push_back({chunk, piece->bytes});
  }
  checkpoint::requirePinned(saved, others);
}

}  // namespace

void compareOnGpus(const stub::Driver& driver, SavedChunks& saved, size_t first, const StateTables& state) {
  using enum SavedChunks::Compared;
  saved.compared.assign(saved.places.size(), asRead);
  for (size_t chunk = first; const auto& piece : placesOf(state))
    saved.compared[chunk++] = piece && MemoryDigests::areOnGpu(driver, *piece) ? onDevice : asRead;
}

uint64_t markResident(stub::SessionState& on, SavedChunks& saved, size_t first, const StateTables& state) {
  MemoryDigests digests(on, saved.digester, bytesOf(state));
  digestAll(digests, itemsOf(state));
  uint64_t bytes = 0;
  auto plan = planOf(state);
  for (size_t chunk = first; auto piece = plan.next(); ++chunk) {
    ChunkPlace& place = saved.places[chunk];
    if (place.form == Form::zero || place.form == Form::resident || digests.of(*piece) != place.digest) continue;
    place.form = Form::resident;
    saved.compared[chunk] = SavedChunks::Compared::already;
    bytes += piece->bytes;
  }
  return bytes;
}

void restoreBytes(stub::SessionState& on, StagingRing& ring, ChunkReading& reading, const SavedChunks& saved, size_t first,
                  const StateTables& state, const Moved& moved) {
  auto items = itemsOf(state);
  Transfers transfers(on, ring.all().size());
  auto take = [&](const Piece& piece, const std::byte* bytes) -> OnItsWay {
    auto& item = items[piece.item];
    item.kind->write(on, *item.row, piece.offset, bytes, piece.bytes);
    moved(piece.bytes);
    if (bytes == nullptr) return std::nullopt;
    return deviceOf(on, item);
  };
  reading.run(&transfers, take, [&](size_t item) { return isFlat(items[item]); });
  stub::require(on.driver, on.synchronize(), "copying to the device's memory");
  requireDigests(on, saved, first, state);
}

}  // namespace vgpu::checkpoint
