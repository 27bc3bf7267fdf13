// Records in LMDB: `objects/` inside a directory, with the tables `records` (key: number of the first frame, 8 bytes, big end
// first; value: record-format.h) and `meta` (the format's version). It stores bytes and does not interpret them.
//
// A store that writes holds a lock on `objects/writer` for as long as it lives. Thread: its owner's. LMDB's own locks are
// process-shared and robust: after a writer is killed the file holds the last commit, and the next writer continues from it.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>
#include <kj/io.h>

#include <cstdint>
#include <functional>
#include <string>

struct MDB_env;

namespace vgpu {

constexpr uint32_t objectListVersion = 3;

// Of a session: some million objects. The list shares a file system, often a tmpfs, with other sessions.
constexpr uint64_t mostListBytes = uint64_t{1} << 30;

class RecordStore {
 public:
  enum class Access {
    read,   // beside the writer, through LMDB's lock file; a program that damages the file may crash this process
    write,  // the only one
    copy,   // a private copy (list-copy.h)
  };
  struct Change {
    uint64_t key;
    kj::Array<capnp::word> value;  // empty: the record is dropped
  };

  // Throws kj::Exception: no list there (read, copy), another version, another writer, another store of this process, no space.
  // `mostBytes`: the largest size that the file may have or reach.
  RecordStore(const std::string& directory, Access access, uint64_t mostBytes = mostListBytes);
  ~RecordStore() noexcept;
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // All changes in one transaction. Throws kj::Exception (a full disk, a list too large); nothing is changed then.
  void write(kj::ArrayPtr<const Change> changes);

  // All records of one commit, by key. Returns its number.
  uint64_t read(const std::function<void(uint64_t key, kj::ArrayPtr<const kj::byte>)>& visit);
  // The number of the latest commit: each has a larger one than those before it in the same file.
  uint64_t commitNumber();

 private:
  void lock();
  void openEnvironment();
  void closeEnvironment();
  void prepare();
  void grow();
  int tryWrite(kj::ArrayPtr<const Change> changes);
  void require(int error, const char* doing) const;

  std::string path;  // of `objects`
  Access access;
  uint64_t mostBytes;
  kj::AutoCloseFd writerLock;
  kj::AutoCloseFd copied;  // of Access::copy
  MDB_env* environment = nullptr;
  unsigned records = 0;  // LMDB's number of the table
};

}  // namespace vgpu
