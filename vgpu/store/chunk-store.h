// The store of a user's snapshots: chunks identified by their digests. A chunk is kept once, however many snapshots have it
// (docs/snapshot.md, Store).
//
//   FOLDER     0700
//     format            "vgpustor" · version (4) · the key of the digests (16)
//     leases            byte N is locked by each process that uses pack N (pack-leases.h)
//     index/            where each chunk is (chunk-index.h)
//     packs/NUMBER      bytes of chunks, one after the other; each pack is written by one save, and never again;
//                       16 hexadecimal digits, drawn at random
//     snapshots/NAME/   a snapshot's directory, without packs; FOLDER/NAME/ below it: directories of other sessions of the same program
//
// A chunk is in the store if the index has it. A save adds all its chunks to the index in one transaction, after its packs have been
// synced; the snapshot exists once its manifest has its name, after that. A process that is killed at any point leaves at most packs, rows
// and an unfinished directory, which the next collection removes.
//
// A save leases the packs that it writes, and the packs of chunks that it finds here and therefore does not write, until its snapshot has
// its name; a restore leases the packs that it reads. A collection removes nothing from a leased pack. It locks the other packs first and
// reads which chunks the snapshots need afterwards, so it sees every snapshot that was saved with the help of those packs.
//
// One thread at a time, and at most one object per folder in a process; any number of processes.
#pragma once

#include <kj/io.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "vgpu/store/chunk-index.h"
#include "vgpu/store/pack-leases.h"

namespace vgpu {

class ChunkStore {
 public:
  // Opens the store in `folder`, or creates it. Throws kj::Exception if the folder is not private to us, is of another version or damaged,
  // or is on a file system without locks.
  explicit ChunkStore(const std::string& folder);
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // The folder of the store that a snapshot's directory lies in; nothing if it lies in no store.
  static std::optional<std::string> around(const std::string& snapshotDirectory);
  // The directory of the snapshot named `snapshot`. Throws kj::Exception if that is not a valid name.
  static std::string directoryOf(const std::string& folder, const std::string& snapshot);

  const std::string& path() const { return folder; }
  const DigestKey& key() const { return digestKey; }

  // Reads all of the index (chunk-index.h). Returns the number of chunks.
  uint64_t checkIndex() const { return index->check(); }

  // Whether the index has a chunk. Leases nothing.
  bool lists(const ChunkName& name) const { return index->find(name).has_value(); }
  // Where a chunk is; its pack is then leased as long as this object lives. Does not wait: returns nothing if there is no such chunk or if
  // a collection has locked the pack.
  std::optional<StoredChunk> find(const ChunkName& name);
  // As find(), but waits for a collection to end. Throws kj::Exception that says what is missing.
  StoredChunk get(const ChunkName& name);

  // A new pack, leased.
  struct NewPack {
    uint64_t number;
    kj::AutoCloseFd file;
    std::string path;
  };
  NewPack createPack();
  std::string packPath(uint64_t number) const;

  // Adds chunks to the index in one transaction; their packs must have been synced. If another process has written the same chunk, the
  // index refers to this one from here on.
  void add(const std::map<ChunkName, StoredChunk>& chunks);

  // Names of the snapshots, finished or not.
  std::vector<std::string> snapshots() const;

  struct Collected {
    uint64_t chunks = 0, packs = 0, freedBytes = 0;  // removed
    uint64_t keptBytes = 0, leasedPacks = 0;         // left in the store; packs that were in use, which are unchanged
  };
  // Removes the chunks that no snapshot needs, and gives their bytes back to the file system. `used` returns the chunks that snapshots
  // need, from files that it reads when it is called. Throws kj::Exception, having removed nothing, if the index lacks one of them. This
  // object must have leased nothing.
  Collected collect(const std::function<std::vector<ChunkName>()>& used);

 private:
  void readFormat();
  void makeFormat();
  bool lease(uint64_t pack, bool waits);
  std::optional<StoredChunk> look(const ChunkName& name, bool waits, std::string& problem);
  std::vector<uint64_t> packNumbers() const;
  bool removePack(uint64_t number, Collected& collected);

  const std::string folder;
  DigestKey digestKey;
  std::optional<PackLeases> leases;
  std::optional<ChunkIndex> index;
  std::map<uint64_t, uint64_t> leased;  // by pack that we read: its size, 0 if the pack is missing
};

}  // namespace vgpu
