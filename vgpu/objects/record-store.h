// Records in LMDB: `objects/` inside a directory, with the tables `records` (key: position of the first frame, 8 bytes,
// big end first; value: record-format.h) and `meta` (the format's version). Bytes in, bytes out: what they mean is not
// known here.
//
// A store that writes holds a lock on `objects/writer` for as long as it lives. Thread: its owner's. LMDB's own locks
// are process-shared and robust: a writer that is killed leaves the last commit, and the next one goes on.
#pragma once

#include <capnp/common.h>
#include <kj/array.h>
#include <kj/io.h>

#include <cstdint>
#include <functional>
#include <string>

struct MDB_env;

namespace vgpu {

constexpr uint32_t objectListVersion = 1;

class RecordStore {
 public:
  enum class Access { read, write };
  struct Change {
    uint64_t key;
    kj::Array<capnp::word> value;  // empty: the record is dropped
  };

  // Throws kj::Exception: no list there (read), another version, another writer, another store of this process, no
  // space.
  RecordStore(const std::string& directory, Access access);
  ~RecordStore() noexcept;
  RecordStore(const RecordStore&) = delete;
  RecordStore& operator=(const RecordStore&) = delete;

  // All changes in one transaction. Throws kj::Exception; nothing is changed then.
  void write(kj::ArrayPtr<const Change> changes);

  // Every record of one moment, by key.
  void read(const std::function<void(uint64_t key, kj::ArrayPtr<const kj::byte>)>& visit);

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
  kj::AutoCloseFd writerLock;
  MDB_env* environment = nullptr;
  unsigned records = 0;  // LMDB's number of the table
};

}  // namespace vgpu
