#include "vgpu/objects/record-store.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <lmdb.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "vgpu/objects/list-copy.h"
#include "vgpu/base/sizes.h"

namespace vgpu {

namespace {

constexpr size_t firstMapBytes = 16 * MiB;
constexpr unsigned readers = 126;

// Another size or member order requires a new version.
struct Meta {
  char magic[8] = {'v', 'g', 'p', 'u', 'o', 'b', 'j', 's'};
  uint32_t version = objectListVersion;
  uint32_t reserved = 0;
};
constexpr char metaKey[] = "format";

class Transaction {
 public:
  explicit Transaction(MDB_env* environment, unsigned flags)
      : error(mdb_txn_begin(environment, nullptr, flags, &txn)) {}
  ~Transaction() {
    if (txn != nullptr) mdb_txn_abort(txn);
  }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  int commit() {
    MDB_txn* taken = txn;
    txn = nullptr;
    return mdb_txn_commit(taken);
  }

  MDB_txn* txn = nullptr;
  int error;
};

[[noreturn]] void refuse(const std::string& text) {
  kj::throwFatalException(kj::Exception(kj::Exception::Type::FAILED, __FILE__, __LINE__, kj::heapString(text.c_str())));
}

MDB_val valueOf(const void* bytes, size_t size) { return {size, const_cast<void*>(bytes)}; }

uint64_t keyOf(const MDB_val& key, const std::string& path) {
  uint64_t big;
  if (key.mv_size != sizeof big) refuse(fmt::format("{}: a record's key of {} bytes, not 8", path, key.mv_size));
  memcpy(&big, key.mv_data, sizeof big);
  return be64toh(big);
}

// A process may open an LMDB file only once: closing a second environment would release the first one's locks, which belong to the process.
bool openInThisProcess(const std::string& file) {
  struct stat wanted, seen;
  if (stat(file.c_str(), &wanted) != 0) return false;
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return false;
  KJ_DEFER(closedir(directory));
  while (auto* entry = readdir(directory)) {
    if (fstatat(dirfd(directory), entry->d_name, &seen, 0) != 0) continue;
    if (seen.st_dev == wanted.st_dev && seen.st_ino == wanted.st_ino) return true;
  }
  return false;
}

}  // namespace

RecordStore::RecordStore(const std::string& directory, Access access, uint64_t mostBytes)
    : path(directory + "/objects"), access(access), mostBytes(mostBytes) {
  std::string data = path + "/data.mdb";
  if (access == Access::copy) {
    copied = copyObjectList(directory, mostBytes);
    openEnvironment();
    return;
  }
  if (access == Access::write) {
    if (mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) require(errno, "making it");
    lock();
  } else if (access == Access::read && ::access(data.c_str(), F_OK) != 0) {
    refuse(fmt::format("there is no object list in {}: {}: {}", directory, data, strerror(errno)));
  }
  if (openInThisProcess(data)) refuse(fmt::format("the object list {} is open in this process already", path));
  openEnvironment();
}

RecordStore::~RecordStore() noexcept { closeEnvironment(); }

void RecordStore::lock() {
  std::string file = path + "/writer";
  int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) require(errno, "opening its lock");
  writerLock = kj::AutoCloseFd(fd);
  if (flock(writerLock, LOCK_EX | LOCK_NB) == 0) return;
  if (errno == EWOULDBLOCK) refuse(fmt::format("the object list {} is locked: another process writes it", path));
  require(errno, "locking it");
}

void RecordStore::openEnvironment() {
  require(mdb_env_create(&environment), "preparing");
  KJ_ON_SCOPE_FAILURE(closeEnvironment());
  require(mdb_env_set_maxdbs(environment, 2), "preparing");
  require(mdb_env_set_maxreaders(environment, readers), "preparing");
  require(mdb_env_set_mapsize(environment, std::min<uint64_t>(firstMapBytes, mostBytes)), "preparing");
  unsigned flags = MDB_NOSYNC | MDB_NOTLS | (access == Access::write ? 0 : MDB_RDONLY);
  std::string file = path;
  if (access == Access::copy) {
    flags |= MDB_NOSUBDIR | MDB_NOLOCK;
    file = fmt::format("/proc/self/fd/{}", copied.get());
  }
  require(mdb_env_open(environment, file.c_str(), flags, 0600), "opening");
  int dead = 0;
  require(mdb_reader_check(environment, &dead), "removing readers that have ended");
  prepare();
}

void RecordStore::closeEnvironment() {
  if (environment != nullptr) mdb_env_close(environment);
  environment = nullptr;
}

// Opens the tables; creates them if the list is new.
void RecordStore::prepare() {
  bool writes = access == Access::write;
  Transaction transaction(environment, writes ? 0 : MDB_RDONLY);
  if (transaction.error == MDB_MAP_RESIZED) {
    require(mdb_env_set_mapsize(environment, 0), "mapping");
    return prepare();
  }
  require(transaction.error, "opening");
  MDB_dbi meta, opened;
  int error = mdb_dbi_open(transaction.txn, "meta", writes ? MDB_CREATE : 0, &meta);
  if (error == MDB_NOTFOUND) refuse(fmt::format("there is no object list in {} yet", path));
  require(error, "opening");
  MDB_val key = valueOf(metaKey, sizeof metaKey - 1), value;
  error = mdb_get(transaction.txn, meta, &key, &value);
  Meta wanted;
  if (error == MDB_NOTFOUND && writes) {
    value = valueOf(&wanted, sizeof wanted);
    error = mdb_put(transaction.txn, meta, &key, &value, 0);
  }
  require(error, "reading its version");
  Meta found;
  if (value.mv_size != sizeof found)
    refuse(
        fmt::format("{} is not an object list: its version record is {} bytes, not {}", path, value.mv_size, sizeof found));
  memcpy(&found, value.mv_data, sizeof found);
  if (memcmp(found.magic, wanted.magic, sizeof found.magic) != 0) refuse(fmt::format("{} is not an object list", path));
  if (found.version != objectListVersion)
    refuse(fmt::format("the object list {} has format version {}; this build reads version {}", path, found.version,
                       objectListVersion));
  require(mdb_dbi_open(transaction.txn, "records", writes ? MDB_CREATE : 0, &opened), "opening");
  require(transaction.commit(), "opening");
  records = opened;
}

void RecordStore::grow() {
  MDB_envinfo info;
  require(mdb_env_info(environment, &info), "growing");
  if (info.me_mapsize >= mostBytes)
    refuse(fmt::format("the object list {} would grow past {} MiB, the largest size allowed for a session", path,
                       mostBytes / MiB));
  require(mdb_env_set_mapsize(environment, std::min<uint64_t>(info.me_mapsize * 2, mostBytes)), "growing");
}

int RecordStore::tryWrite(kj::ArrayPtr<const Change> changes) {
  Transaction transaction(environment, 0);
  if (transaction.error != 0) return transaction.error;
  for (auto& change : changes) {
    uint64_t big = htobe64(change.key);
    MDB_val key = valueOf(&big, sizeof big), value = valueOf(change.value.begin(), change.value.asBytes().size());
    int error = change.value.size() > 0 ? mdb_put(transaction.txn, records, &key, &value, 0)
                                        : mdb_del(transaction.txn, records, &key, nullptr);
    if (error != 0 && error != MDB_NOTFOUND) return error;
  }
  return transaction.commit();
}

void RecordStore::write(kj::ArrayPtr<const Change> changes) {
  if (environment == nullptr) openEnvironment();
  int dead = 0;
  require(mdb_reader_check(environment, &dead), "removing readers that have ended");
  int error = tryWrite(changes);
  for (; error == MDB_MAP_FULL; error = tryWrite(changes)) grow();
  if (error == 0) return;
  // A failed transaction can leave the environment unusable; a new environment continues from the last commit.
  closeEnvironment();
  require(error, "writing");
}

uint64_t RecordStore::commitNumber() {
  Transaction transaction(environment, MDB_RDONLY);
  if (transaction.error == MDB_MAP_RESIZED) {
    require(mdb_env_set_mapsize(environment, 0), "mapping");
    return commitNumber();
  }
  require(transaction.error, "reading");
  return mdb_txn_id(transaction.txn);
}

uint64_t RecordStore::read(const std::function<void(uint64_t, kj::ArrayPtr<const kj::byte>)>& visit) {
  Transaction transaction(environment, MDB_RDONLY);
  if (transaction.error == MDB_MAP_RESIZED) {  // the writer has enlarged the map since we opened it
    require(mdb_env_set_mapsize(environment, 0), "mapping");
    return read(visit);
  }
  require(transaction.error, "reading");
  MDB_cursor* cursor;
  require(mdb_cursor_open(transaction.txn, records, &cursor), "reading");
  KJ_DEFER(mdb_cursor_close(cursor));
  MDB_val key, value;
  int error = mdb_cursor_get(cursor, &key, &value, MDB_FIRST);
  for (; error == 0; error = mdb_cursor_get(cursor, &key, &value, MDB_NEXT))
    visit(keyOf(key, path), {static_cast<const kj::byte*>(value.mv_data), value.mv_size});
  if (error != MDB_NOTFOUND) require(error, "reading");
  return mdb_txn_id(transaction.txn);
}

void RecordStore::require(int error, const char* doing) const {
  if (error != 0) refuse(fmt::format("the object list {}: {}: {}", path, doing, mdb_strerror(error)));
}

}  // namespace vgpu
