#include "vgpu/store/chunk-store.h"

#include <errno.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <kj/debug.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <set>

#include "vgpu/base/fail.h"
#include "vgpu/base/fault-point.h"
#include "vgpu/base/private-folder.h"
#include "vgpu/store/disk-space.h"
#include "vgpu/store/file-system.h"
#include "vgpu/store/pack-space.h"

namespace vgpu {

namespace {

namespace fs = std::filesystem;

constexpr size_t mostNameBytes = 100;
constexpr uint32_t storeVersion = 1;
constexpr uint64_t mostPackNumber = (uint64_t{1} << 62) - 1;  // a pack's lease is a byte offset in a file, so its number must fit one

struct Format {
  char magic[8] = {'v', 'g', 'p', 'u', 's', 't', 'o', 'r'};
  uint32_t version = storeVersion;
  DigestKey key;
};
static_assert(sizeof(Format) == 28);

std::string formatPath(const std::string& folder) { return folder + "/format"; }

[[noreturn]] void refuse(const std::string& folder, const std::string& why) {
  fail(fmt::format("the store of snapshots {} cannot be used: {}", folder, why));
}

void syncFolder(const std::string& path) {
  kj::AutoCloseFd file(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (file.get() < 0 || fsync(file) != 0) refuse(path, fmt::format("syncing it: {}", writeProblem(errno, path)));
}

}  // namespace

ChunkStore::ChunkStore(const std::string& path) : folder(path) {
  std::string problem;
  for (auto& part : {folder, folder + "/packs", folder + "/snapshots"})
    if (openPrivateFolder(part, problem) == nullptr) refuse(folder, problem);
  struct statfs found;
  if (statfs(folder.c_str(), &found) == 0) problem = unfitType(static_cast<uint32_t>(found.f_type));
  if (!problem.empty()) refuse(folder, problem);
  readFormat();
  leases.emplace(folder + "/leases", ::access((folder + "/index").c_str(), F_OK) != 0);
  if (openPrivateFolder(folder + "/index", problem) == nullptr) refuse(folder, problem);
  index.emplace(folder + "/index");
}

std::optional<std::string> ChunkStore::around(const std::string& snapshotDirectory) {
  fs::path path = fs::path(snapshotDirectory).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  fs::path folder = path.parent_path();
  if (fs::path above = folder.parent_path().parent_path(); folder.filename() != "snapshots" && above.filename() == "snapshots")
    folder = above;
  if (folder.filename() != "snapshots") return std::nullopt;
  std::string store = folder.parent_path();
  auto isThere = [](const std::string& name) { return ::access(name.c_str(), F_OK) == 0; };
  if (!isThere(formatPath(store)) && !isThere(store + "/index")) return std::nullopt;  // a store without its format file is refused later
  return store;
}

std::string ChunkStore::directoryOf(const std::string& folder, const std::string& snapshot) {
  auto isPlain = [](unsigned char letter) { return std::isalnum(letter) || letter == '.' || letter == '_' || letter == '-'; };
  if (snapshot.empty() || snapshot.size() > mostNameBytes || snapshot[0] == '.' || !std::ranges::all_of(snapshot, isPlain))
    fail(fmt::format("\"{}\" cannot name a snapshot: use letters, digits, '.', '_' and '-', not '.' first, {} characters at most",
                     snapshot, mostNameBytes));
  return folder + "/snapshots/" + snapshot;
}

// The first process to make the file puts its key there. An existing index without a format file means that the key of its digests is lost.
void ChunkStore::makeFormat() {
  if (::access((folder + "/index").c_str(), F_OK) == 0 && ::access(formatPath(folder).c_str(), F_OK) != 0)
    refuse(folder, "its file format is missing, and the digests of its chunks cannot be computed without it; put it back, or use another folder");
  if (std::string problem = unfitFileSystem(folder); !problem.empty()) refuse(folder, problem);
  std::string unfinished = formatPath(folder) + fmt::format(".{}", getpid());
  KJ_DEFER(unlink(unfinished.c_str()));
  Format format{.key = DigestKey::random()};
  kj::AutoCloseFd file(open(unfinished.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  bool isWritten = file.get() >= 0 && write(file, &format, sizeof format) == sizeof format && fsync(file) == 0;
  if (!isWritten || (link(unfinished.c_str(), formatPath(folder).c_str()) != 0 && errno != EEXIST))
    refuse(folder, fmt::format("making its file format: {}", writeProblem(errno, folder)));
  syncFolder(folder);
}

void ChunkStore::readFormat() {
  if (::access(formatPath(folder).c_str(), F_OK) != 0) makeFormat();
  kj::AutoCloseFd file(open(formatPath(folder).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) refuse(folder, fmt::format("reading its file format: {}", strerror(errno)));
  Format found, expected;
  if (read(file, &found, sizeof found) != sizeof found || memcmp(found.magic, expected.magic, sizeof found.magic) != 0)
    refuse(folder, "its file format was altered or damaged");
  if (found.version != storeVersion)
    refuse(folder, fmt::format("its format has version {}, and this build reads version {}; use it with the version that made it", found.version,
                               storeVersion));
  digestKey = found.key;
}

// What was read from the index before the pack was leased may have been removed since.
bool ChunkStore::lease(uint64_t pack, bool waits) {
  if (!(waits ? leases->await(pack) : leases->take(pack))) return false;
  struct stat status;
  bool isThere = lstat(packPath(pack).c_str(), &status) == 0 && S_ISREG(status.st_mode);
  leased[pack] = isThere ? static_cast<uint64_t>(status.st_size) : 0;
  index->renew();
  return true;
}

std::optional<StoredChunk> ChunkStore::look(const ChunkName& name, bool waits, std::string& problem) {
  for (;;) {
    auto chunk = index->find(name);
    if (!chunk) {
      problem = fmt::format("its index has no chunk {:016x}{:016x} of {} bytes", name.digest.high, name.digest.low, name.bytes);
      return std::nullopt;
    }
    auto pack = leased.find(chunk->pack);
    if (pack == leased.end()) {
      if (!lease(chunk->pack, waits)) return std::nullopt;
      continue;
    }
    if (chunk->offset <= pack->second && chunk->bytes <= pack->second - chunk->offset) return chunk;
    problem = fmt::format("pack {} has {} bytes, but a chunk ends at {}: the pack was removed or truncated",
                          packPath(chunk->pack), pack->second, chunk->offset + chunk->bytes);
    return std::nullopt;
  }
}

std::optional<StoredChunk> ChunkStore::find(const ChunkName& name) {
  std::string ignored;
  return look(name, false, ignored);
}

StoredChunk ChunkStore::get(const ChunkName& name) {
  std::string problem;
  auto chunk = look(name, true, problem);
  if (!chunk) fail(fmt::format("the store of snapshots {} lacks a chunk: {}", folder, problem));
  return *chunk;
}

std::string ChunkStore::packPath(uint64_t number) const { return fmt::format("{}/packs/{:016x}", folder, number); }

// The number is random: none is used twice, so a leftover row of a pack that somebody removed never refers to a new pack.
ChunkStore::NewPack ChunkStore::createPack() {
  for (;;) {
    uint64_t number = 0;
    if (getentropy(&number, sizeof number) != 0) refuse(folder, fmt::format("choosing the name of a pack: {}", strerror(errno)));
    number &= mostPackNumber;
    if (number == 0 || !leases->take(number)) continue;
    std::string path = packPath(number);
    int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0) return {number, kj::AutoCloseFd(fd), path};
    if (errno != EEXIST) refuse(folder, fmt::format("making {}: {}", path, writeProblem(errno, path)));
  }
}

std::vector<uint64_t> ChunkStore::packNumbers() const {
  std::vector<uint64_t> numbers;
  for (auto& entry : fs::directory_iterator(folder + "/packs")) {
    std::string name = entry.path().filename();
    uint64_t number = 0;
    auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number, 16);
    if (error == std::errc() && end == name.data() + name.size() && number > 0) numbers.push_back(number);
  }
  std::ranges::sort(numbers);
  return numbers;
}

void ChunkStore::add(const std::map<ChunkName, StoredChunk>& chunks) {
  syncFolder(folder + "/packs");
  index->put(chunks);
}

std::vector<std::string> ChunkStore::snapshots() const {
  std::vector<std::string> names;
  for (auto& entry : fs::directory_iterator(folder + "/snapshots")) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// Returns false if the pack stays. Releases its lease.
bool ChunkStore::removePack(uint64_t number, Collected& collected) {
  std::string path = packPath(number);
  uint64_t bytes = allocatedBytes(path);
  if (unlink(path.c_str()) != 0) return false;
  leases->release(number);
  ++collected.packs;
  collected.freedBytes += bytes;
  return true;
}

ChunkStore::Collected ChunkStore::collect(const std::function<std::vector<ChunkName>()>& used) {
  Collected collected;
  std::map<uint64_t, std::vector<Extent>> alone;  // by pack that no process uses: the pieces that stay
  std::set<uint64_t> inUse;
  KJ_DEFER(for (auto& pack : alone) leases->release(pack.first));
  for (uint64_t number : packNumbers()) {
    if (leases->takeAlone(number)) alone[number];
    else
      inUse.insert(number);
  }
  auto names = used();
  std::ranges::sort(names);
  index->renew();
  for (auto& name : names)
    if (!index->find(name)) fail(fmt::format("nothing is removed from the store {}: its index lacks a chunk that a snapshot needs; "
                                             "`vgpuctl snapshots verify` names the snapshot: remove that one", folder));
  auto isNeeded = [&](const ChunkName& name) { return std::ranges::binary_search(names, name); };
  index->filter([&](const ChunkName& name, const StoredChunk& chunk) {
    auto pack = alone.find(chunk.pack);
    if (pack != alone.end() && isNeeded(name)) pack->second.push_back({chunk.offset, chunk.bytes});
    return true;
  });
  // Packs are removed before the index is filtered, because on a full disk the index cannot grow: a row whose pack is missing counts as no
  // chunk.
  std::erase_if(alone, [&](auto& pack) { return pack.second.empty() && removePack(pack.first, collected); });
  collected.chunks = index->filter([&](const ChunkName& name, const StoredChunk& chunk) {
    bool isOthers =
        inUse.contains(chunk.pack) || (!alone.contains(chunk.pack) && ::access(packPath(chunk.pack).c_str(), F_OK) == 0);
    return isOthers || isNeeded(name);
  });
  faultPoint("gc.index-written");
  for (auto& [number, kept] : alone) {
    std::string path = packPath(number);
    uint64_t before = allocatedBytes(path);
    if (!kept.empty()) keepOnly(path, std::move(kept));
    collected.freedBytes += before - std::min(before, allocatedBytes(path));
  }
  collected.leasedPacks = inUse.size();
  for (uint64_t number : packNumbers()) collected.keptBytes += allocatedBytes(packPath(number));
  return collected;
}

}  // namespace vgpu
