// The index of a store of chunks: in which pack each chunk is, and where. Kept in LMDB, a row a chunk (docs/snapshot.md, Store).
//
// What changes, changes in one transaction, which is on disk when the call returns; whoever reads sees all of it or nothing. Any number of
// processes at a time. LMDB maps the file and trusts it: an index that was cut is refused when it is opened, one whose pages were altered may
// end the process, so whoever cannot afford that has another process check() it before.
//
// Owns the environment and a transaction that reads. One thread at a time; at most one of a folder in a process (LMDB's rule).
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

// What a chunk is known by: chunks of other sizes are other chunks.
struct ChunkName {
  Digest digest;
  uint64_t bytes = 0;
  auto operator<=>(const ChunkName&) const = default;
};

// Where it is, and in which form (vgpu/snapshot/chunk.h).
struct StoredChunk {
  uint64_t pack = 0, offset = 0;
  uint32_t bytes = 0;
  uint32_t form = 0;
  bool operator==(const StoredChunk&) const = default;
};

class ChunkIndex {
 public:
  // The index in `folder`, made if it is not there. Throws kj::Exception that names it, as all functions here do.
  explicit ChunkIndex(const std::string& folder);
  ~ChunkIndex() noexcept;
  ChunkIndex(const ChunkIndex&) = delete;
  ChunkIndex& operator=(const ChunkIndex&) = delete;

  // As of the last renew(), put() or filter().
  std::optional<StoredChunk> find(const ChunkName& name) const;
  // Reads every page. How many rows there are.
  uint64_t check() const;
  void renew();

  // In one transaction. A row that is there already is replaced.
  void put(const std::map<ChunkName, StoredChunk>& rows);
  // In one transaction: visits every row as it is then, and removes those for which `keeps` is false. How many it has removed.
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
