// The store of a user's snapshots: chunks known by their digests, each kept once, whichever snapshot has it (docs/snapshot.md,
// Store).
//
//   FOLDER     0700
//     format            "vgpustor" · version (4) · the key of the digests (16)
//     leases            byte N is locked by who uses pack N (pack-leases.h)
//     index/            where each chunk is (chunk-index.h)
//     packs/NUMBER      bytes of chunks, one behind the other; each written by one save, and never again;
//                       16 hexadecimal digits, drawn at random
//     snapshots/NAME/   a snapshot's directory, without packs; below it, FOLDER/NAME/, those of other sessions of one program
//
// A chunk is in the store if the index says so, which it does in one transaction for all of a save, after the save's packs have
// been synced; a snapshot is, if its manifest has its name, after that. Whoever is killed at any instant leaves at most packs,
// rows and an unfinished directory, which the next collection removes.
//
// A save leases the packs that it writes, and those of the chunks that it finds here and therefore does not write, until its
// snapshot has its name; a restore leases those that it reads. A collection removes nothing of a leased pack, and reads which
// chunks the snapshots need after it has locked the others: so it finds the names of all that was saved with the help of those.
//
// One thread at a time, and at most one of a folder in a process; any number of processes.
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
  // The store in `folder`, made if it is not there. Throws kj::Exception: not private to us, of another version, damaged, on a file system
  // without locks.
  explicit ChunkStore(const std::string& folder);
  ChunkStore(const ChunkStore&) = delete;
  ChunkStore& operator=(const ChunkStore&) = delete;

  // The folder of the store in which a snapshot's directory is; nothing if it is in none.
  static std::optional<std::string> around(const std::string& snapshotDirectory);
  // The directory of a snapshot of that name. Throws kj::Exception if that can be no name.
  static std::string directoryOf(const std::string& folder, const std::string& snapshot);

  const std::string& path() const { return folder; }
  const DigestKey& key() const { return digestKey; }

  // Reads all of the index (chunk-index.h). How many chunks there are.
  uint64_t checkIndex() const { return index->check(); }

  // Whether the index has a chunk. Leases nothing.
  bool lists(const ChunkName& name) const { return index->find(name).has_value(); }
  // Where a chunk is, if it can be had; its pack is leased then, as long as this object lives. Nothing also if a collection has the pack:
  // this does not wait.
  std::optional<StoredChunk> find(const ChunkName& name);
  // Waits for a collection to end. Throws kj::Exception that says what is missing.
  StoredChunk get(const ChunkName& name);

  // Leased.
  struct NewPack {
    uint64_t number;
    kj::AutoCloseFd file;
    std::string path;
  };
  NewPack createPack();
  std::string packPath(uint64_t number) const;

  // All at once, after their packs have been synced. From here on these are where the chunks are, if another process wrote the same.
  void add(const std::map<ChunkName, StoredChunk>& chunks);

  // Names of the snapshots, whole or not.
  std::vector<std::string> snapshots() const;

  struct Collected {
    uint64_t chunks = 0, packs = 0, freedBytes = 0;  // removed
    uint64_t keptBytes = 0, leasedPacks = 0;         // left; packs that were in use, and are as they were
  };
  // Removes the chunks that nobody needs, and gives their bytes back to the file system. `used` says which snapshots need, by files that
  // it reads when it is called. Throws kj::Exception, and has removed nothing, if the index does not have all of them. Of an object that
  // has leased nothing.
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
  std::map<uint64_t, uint64_t> leased;  // by pack that we read: its size, 0 if it is missing
};

}  // namespace vgpu
