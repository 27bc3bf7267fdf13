// Records in LMDB, in `objects/` of a directory. Table `records`: the key is the number of the first frame (8 bytes, big-endian), the value
// a record (record-format.h). Table `meta`: the format's version. The store does not interpret the bytes.
//
// A store that writes holds a lock on `objects/writer` for as long as it lives. Used by its owner's thread. LMDB's own locks are shared
// between processes and robust: after a writer is killed the file holds the last commit, and the next writer continues from it.
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

// The limit for a session's list: some million objects. It shares a file system, often a tmpfs, with other sessions' lists.
constexpr uint64_t mostListBytes = uint64_t{1} << 30;

class RecordStore {
 public:
  enum class Access {
    read,   // concurrently with the writer, through LMDB's lock file; a program that damages the file may crash this process
    write,  // the only writer
    copy,   // a private copy (list-copy.h)
  };
  struct Change {
    uint64_t key;
    kj::Array<capnp::word> value;  // empty: the record is removed
  };

  // Throws kj::Exception: no list (read, copy), another version, another writer, the list is already open in this process, no space.
  // `mostBytes`: the largest size that the file may have or reach.
  RecordStore(const std::string& directory, Access access, uint64_t mostBytes = mostListBytes);
  ~RecordStore() noexcept;
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // Makes all changes in one transaction. Throws kj::Exception (disk full, list too large), having changed nothing.
  void write(kj::ArrayPtr<const Change> changes);

  // Visits all records of one commit, by key. Returns the commit's number.
  uint64_t read(const std::function<void(uint64_t key, kj::ArrayPtr<const kj::byte>)>& visit);
  // The number of the latest commit; it grows with each commit to the same file.
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
  kj::AutoCloseFd copied;  // for Access::copy
  MDB_env* environment = nullptr;
  unsigned records = 0;  // LMDB's handle of the table
};

}  // namespace vgpu
