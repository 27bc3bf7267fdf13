// The index of a chunk store: the pack and offset of each chunk. An LMDB database with one row per chunk (docs/snapshot.md, Store).
//
// Each change is one transaction, on disk when the call returns; a reader sees all of it or nothing. Any number of processes may use the
// index at a time. LMDB maps the file and trusts its content: a truncated index is refused when it is opened, but altered pages may crash
// the process. A caller that cannot afford a crash has another process check() the index first.
//
// Owns the environment and a read transaction. One thread at a time; at most one object per folder in a process (LMDB's rule).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "vgpu/store/chunk-digest.h"

struct MDB_env;
struct MDB_txn;

namespace vgpu {

// What identifies a chunk: the same digest with another size is another chunk.
struct ChunkName {
  Digest digest;
  uint64_t bytes = 0;
  auto operator<=>(const ChunkName&) const = default;
};

// Where a chunk lies, and in which form (vgpu/snapshot/chunk.h).
struct StoredChunk {
  uint64_t pack = 0, offset = 0;
  uint32_t bytes = 0;
  uint32_t form = 0;
  bool operator==(const StoredChunk&) const = default;
};

class ChunkIndex {
 public:
  // The index in `folder`, created if it does not exist. All functions here throw a kj::Exception that names the index.
  explicit ChunkIndex(const std::string& folder);
  ~ChunkIndex() noexcept;
  ChunkIndex(const ChunkIndex&) = delete;
  ChunkIndex& operator=(const ChunkIndex&) = delete;

  // Looks in the index as it was at the last renew(), put() or filter().
  std::optional<StoredChunk> find(const ChunkName& name) const;
  // Reads every page. Returns the number of rows.
  uint64_t check() const;
  void renew();

  // Adds rows in one transaction. An existing row of the same name is replaced.
  void put(const std::map<ChunkName, StoredChunk>& rows);
  // In one transaction, visits every row and removes those for which `keeps` returns false. Returns how many it has removed.
  uint64_t filter(const std::function<bool(const ChunkName&, const StoredChunk&)>& keeps);

 private:
  uint64_t checkTable(unsigned number) const;
  void open();
  void refuseIfCut() const;
  template <typename Change>
  void change(Change apply);
  void end() noexcept;
  void require(int error, const char* doing) const;

  const std::string folder;
  MDB_env* environment = nullptr;
  MDB_txn* reading = nullptr;
  unsigned table = 0;
};

}  // namespace vgpu
