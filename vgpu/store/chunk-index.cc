#include "vgpu/store/chunk-index.h"

#include <errno.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <lmdb.h>
#include <sys/stat.h>

#include <cstring>
#include <utility>

#include "vgpu/base/fail.h"
#include "vgpu/base/sizes.h"
#include "vgpu/store/disk-space.h"

namespace vgpu {

namespace {

constexpr size_t mostIndexBytes = 4 * GiB;  // address space for the index: some 40 million chunks, 80 TiB of memory
constexpr unsigned mostReaders = 512;       // processes that read at the same time

static_assert(sizeof(ChunkName) == 24 && sizeof(StoredChunk) == 24);

template <typename Value>
MDB_val bytesOf(const Value& value) {
  return {sizeof value, const_cast<Value*>(&value)};
}

// LMDB reports EIO for a write that a full disk has cut short.
std::string textOf(int error, const std::string& folder) {
  constexpr uint64_t mostCut = MiB;  // more than LMDB writes at once
  if (error == EIO && freeBytesAt(folder) < mostCut) error = ENOSPC;
  return error > 0 ? writeProblem(error, folder) : mdb_strerror(error);
}

}  // namespace

ChunkIndex::ChunkIndex(const std::string& folder) : folder(folder) {
  KJ_ON_SCOPE_FAILURE(end());
  open();
}

ChunkIndex::~ChunkIndex() noexcept { end(); }

void ChunkIndex::open() {
  require(mdb_env_create(&environment), "preparing it");
  require(mdb_env_set_mapsize(environment, mostIndexBytes), "preparing it");
  require(mdb_env_set_maxreaders(environment, mostReaders), "preparing it");
  require(mdb_env_open(environment, folder.c_str(), MDB_NOTLS, 0600), "opening it");
  refuseIfCut();
  int dead = 0;
  require(mdb_reader_check(environment, &dead), "removing readers that have ended");
  require(mdb_txn_begin(environment, nullptr, MDB_RDONLY, &reading), "reading it");
  require(mdb_dbi_open(reading, nullptr, 0, &table), "reading it");
}

// Reading mapped pages beyond the file's end would kill this process with SIGBUS.
void ChunkIndex::refuseIfCut() const {
  MDB_envinfo info;
  MDB_stat pages;
  struct stat status;
  require(mdb_env_info(environment, &info), "inspecting it");
  require(mdb_env_stat(environment, &pages), "inspecting it");
  std::string file = folder + "/data.mdb";
  if (stat(file.c_str(), &status) != 0) require(errno, "inspecting it");
  uint64_t expected = (info.me_last_pgno + 1) * uint64_t{pages.ms_psize};
  if (static_cast<uint64_t>(status.st_size) < expected)
    fail(fmt::format("the index of chunks {} cannot be used: it has {} bytes and must have {}; it was truncated", file,
                     status.st_size, expected));
}

void ChunkIndex::end() noexcept {
  if (reading != nullptr) mdb_txn_abort(std::exchange(reading, nullptr));
  if (environment != nullptr) mdb_env_close(std::exchange(environment, nullptr));
}

void ChunkIndex::require(int error, const char* doing) const {
  if (error != 0) fail(fmt::format("the index of chunks {} cannot be used: {}: {}", folder, doing, textOf(error, folder)));
}

void ChunkIndex::renew() {
  mdb_txn_reset(reading);
  require(mdb_txn_renew(reading), "reading it");
}

std::optional<StoredChunk> ChunkIndex::find(const ChunkName& name) const {
  MDB_val key = bytesOf(name), value;
  int error = mdb_get(reading, table, &key, &value);
  if (error == MDB_NOTFOUND) return std::nullopt;
  require(error, "looking for a chunk");
  StoredChunk chunk;
  if (value.mv_size != sizeof chunk) require(MDB_CORRUPTED, "looking for a chunk");
  std::memcpy(&chunk, value.mv_data, sizeof chunk);
  return chunk;
}

uint64_t ChunkIndex::checkTable(unsigned number) const {
  MDB_cursor* cursor = nullptr;
  require(mdb_cursor_open(reading, number, &cursor), "reading it");
  KJ_DEFER(mdb_cursor_close(cursor));
  MDB_val key, value;
  uint64_t rows = 0;
  [[maybe_unused]] volatile unsigned char last = 0;  // volatile: forces a read of the value's page
  int error;
  for (; (error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0; ++rows) {
    auto* bytes = static_cast<const unsigned char*>(value.mv_data);
    if (number == table && (key.mv_size != sizeof(ChunkName) || value.mv_size != sizeof(StoredChunk))) require(MDB_CORRUPTED, "reading it");
    if (value.mv_size > 0) last = bytes[value.mv_size - 1];
  }
  if (error != MDB_NOTFOUND) require(error, "reading it");
  return rows;
}

uint64_t ChunkIndex::check() const {
  constexpr unsigned freePages = 0;  // LMDB's table of free pages, from which a write transaction takes pages
  checkTable(freePages);
  MDB_stat pages;
  require(mdb_stat(reading, table, &pages), "inspecting it");
  uint64_t rows = checkTable(table);
  if (rows != pages.ms_entries) require(MDB_CORRUPTED, "counting its rows");
  return rows;
}

template <typename Change>
void ChunkIndex::change(Change apply) {
  MDB_txn* writing = nullptr;
  require(mdb_txn_begin(environment, nullptr, 0, &writing), "writing it");
  KJ_ON_SCOPE_FAILURE(if (writing != nullptr) mdb_txn_abort(writing));
  apply(writing);
  require(mdb_txn_commit(std::exchange(writing, nullptr)), "writing it");
  renew();
}

void ChunkIndex::put(const std::map<ChunkName, StoredChunk>& rows) {
  change([&](MDB_txn* writing) {
    for (auto& [name, chunk] : rows) {
      MDB_val key = bytesOf(name), value = bytesOf(chunk);
      require(mdb_put(writing, table, &key, &value, 0), "writing it");
    }
  });
}

uint64_t ChunkIndex::filter(const std::function<bool(const ChunkName&, const StoredChunk&)>& keeps) {
  uint64_t removed = 0;
  change([&](MDB_txn* writing) {
    MDB_cursor* cursor = nullptr;
    require(mdb_cursor_open(writing, table, &cursor), "reading it");
    KJ_DEFER(mdb_cursor_close(cursor));
    MDB_val key, value;
    int error;
    while ((error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
      ChunkName name;
      StoredChunk chunk;
      if (key.mv_size != sizeof name || value.mv_size != sizeof chunk) require(MDB_CORRUPTED, "reading it");
      std::memcpy(&name, key.mv_data, sizeof name);
      std::memcpy(&chunk, value.mv_data, sizeof chunk);
      if (keeps(name, chunk)) continue;
      require(mdb_cursor_del(cursor, 0), "writing it");
      ++removed;
    }
    if (error != MDB_NOTFOUND) require(error, "reading it");
  });
  return removed;
}

}  // namespace vgpu
