#include "vgpu/store/chunk-store.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <set>

#include "../files.h"
#include "vgpu/store/file-system.h"
#include "vgpu/store/pack-space.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

constexpr uint32_t chunkSize = 16384;

ChunkName nameOf(uint64_t number) { return {{number * 0x9e3779b97f4a7c15 >> 3, number}, chunkSize}; }

std::vector<std::byte> contentOf(uint64_t number) { return randomBytes(chunkSize, static_cast<unsigned>(number)); }

// Writes chunks `first` to `last` in sequence into a new pack, which is not in the index yet.
std::map<ChunkName, StoredChunk> writePack(ChunkStore& store, uint64_t first, uint64_t last) {
  auto pack = store.createPack();
  std::map<ChunkName, StoredChunk> rows;
  for (uint64_t number = first; number <= last; ++number) {
    auto bytes = contentOf(number);
    KJ_REQUIRE(write(pack.file, bytes.data(), bytes.size()) == ssize_t{chunkSize});
    rows[nameOf(number)] = {pack.number, (number - first) * chunkSize, chunkSize, 1};
  }
  return rows;
}

uint64_t addPack(const std::string& path, uint64_t first, uint64_t last) {
  ChunkStore store(path);
  auto rows = writePack(store, first, last);
  store.add(rows);
  return rows.begin()->second.pack;
}

ChunkStore::Collected collect(const std::string& path, std::vector<ChunkName> used) {
  return ChunkStore(path).collect([&] { return used; });
}

bool isWhole(ChunkStore& store, uint64_t number) {
  StoredChunk chunk = store.get(nameOf(number));
  std::vector<std::byte> bytes(chunk.bytes);
  std::ifstream file(store.packPath(chunk.pack), std::ios::binary);
  file.seekg(static_cast<std::streamoff>(chunk.offset));
  file.read(reinterpret_cast<char*>(bytes.data()), chunk.bytes);
  return file && bytes == contentOf(number);
}

pid_t inChild(const std::function<void()>& action) {
  pid_t child = fork();
  if (child != 0) return child;
  bool failed = kj::runCatchingExceptions([&] { action(); }) != nullptr;
  _exit(failed ? 1 : 0);
}

int statusOf(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

std::string problemOf(const std::string& path) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { ChunkStore store(path); })) return exception->getDescription().cStr();
  return "";
}

}  // namespace

TEST_CASE("a chunk that was added is found by the next process that opens the store; with another size it is another chunk") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  DigestKey key = ChunkStore(path).key();
  addPack(path, 1, 3);
  ChunkStore store(path);
  CHECK(store.key() == key);
  for (uint64_t number : {1, 2, 3}) CHECK(isWhole(store, number));
  CHECK_FALSE(store.find(nameOf(4)));
  ChunkName shorter = nameOf(1);
  shorter.bytes -= 1;
  CHECK_FALSE(store.find(shorter));
  CHECK_THROWS_WITH_AS(store.get(shorter), doctest::Contains("its index has no chunk"), kj::Exception);
}

TEST_CASE("a collection keeps needed chunks and returns the rest to the file system") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  uint64_t mixed = addPack(path, 1, 3), unused = addPack(path, 4, 9);
  std::string mixedPath, unusedPath;
  {
    ChunkStore store(path);
    mixedPath = store.packPath(mixed), unusedPath = store.packPath(unused);
  }
  auto collected = collect(path, {nameOf(2)});
  CHECK(collected.chunks == 8);
  CHECK(collected.packs == 1);
  CHECK(collected.leasedPacks == 0);
  CHECK(collected.freedBytes == 8 * chunkSize);
  CHECK(collected.keptBytes == chunkSize);
  CHECK(allocatedBytes(mixedPath) == chunkSize);
  CHECK(allocatedBytes(unusedPath) == 0);
  ChunkStore store(path);
  CHECK(isWhole(store, 2));
  CHECK_FALSE(store.find(nameOf(1)));
}

TEST_CASE("a collection of thousands of chunks in any order keeps exactly those that are needed") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  constexpr uint64_t count = 5000;
  std::vector<ChunkName> used;
  {
    ChunkStore store(path);
    auto pack = store.createPack();
    KJ_REQUIRE(ftruncate(pack.file, count) == 0);
    std::map<ChunkName, StoredChunk> rows;
    for (uint64_t number = 1; number <= count; ++number) rows[nameOf(number)] = {pack.number, number - 1, 1, 1};
    store.add(rows);
  }
  for (uint64_t number = 1; number <= count; number += 7) used.push_back(nameOf(number));
  CHECK(collect(path, used).chunks == count - used.size());
  ChunkStore store(path);
  for (uint64_t number = 1; number <= count; ++number) CHECK(store.find(nameOf(number)).has_value() == (number % 7 == 1));
}

TEST_CASE("a collection leaves packs in use unchanged, indexed or not") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  uint64_t reused = addPack(path, 1, 2);
  PackLeases another(path + "/leases", false);
  uint64_t begun;
  {
    ChunkStore store(path);
    begun = store.createPack().number;
    CHECK(another.take(begun));
  }
  CHECK(another.take(reused));
  CHECK(collect(path, {}).leasedPacks == 2);
  {
    ChunkStore store(path);
    CHECK(isWhole(store, 1));
    CHECK(access(store.packPath(begun).c_str(), F_OK) == 0);
  }
  another.release(reused);
  another.release(begun);
  CHECK(collect(path, {}).packs == 2);
  CHECK(namesIn(path + "/packs").empty());
}

TEST_CASE("finding a chunk leases its pack") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  uint64_t pack = addPack(path, 1, 1);
  PackLeases another(path + "/leases", false);
  {
    ChunkStore store(path);
    CHECK(another.takeAlone(pack));
    another.release(pack);
    CHECK(store.find(nameOf(1)));
    CHECK_FALSE(another.takeAlone(pack));
  }
  CHECK(another.takeAlone(pack));
}

TEST_CASE("a chunk whose pack a collection holds is written again, and is not removed when the collection drops the first copy") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  uint64_t first = addPack(path, 1, 1);
  PackLeases collection(path + "/leases", false);
  ChunkStore store(path);
  CHECK(collection.takeAlone(first));
  CHECK_FALSE(store.find(nameOf(1)));
  auto rows = writePack(store, 1, 1);
  store.add(rows);
  CHECK(store.find(nameOf(1))->pack == rows.begin()->second.pack);
  collection.release(first);
  CHECK(statusOf(inChild([&] { KJ_REQUIRE(collect(path, {}).packs == 1); })) == 0);
  CHECK(isWhole(store, 1));
}

TEST_CASE("nothing is removed if the index lacks a chunk that is needed") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  addPack(path, 1, 2);
  CHECK_THROWS_WITH_AS(collect(path, {nameOf(1), nameOf(3)}), doctest::Contains("its index lacks a chunk that a snapshot needs"), kj::Exception);
  ChunkStore store(path);
  CHECK(isWhole(store, 2));
}

TEST_CASE("a missing or truncated pack is reported to its user, and a save does not rely on it") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  uint64_t cut = addPack(path, 1, 2), missing = addPack(path, 3, 3);
  std::string cutPath, missingPath;
  {
    ChunkStore store(path);
    cutPath = store.packPath(cut), missingPath = store.packPath(missing);
  }
  KJ_REQUIRE(truncate(cutPath.c_str(), 2 * chunkSize - 1) == 0 && unlink(missingPath.c_str()) == 0);
  ChunkStore store(path);
  CHECK(isWhole(store, 1));
  CHECK_FALSE(store.find(nameOf(2)));
  CHECK_FALSE(store.find(nameOf(3)));
  CHECK_THROWS_WITH_AS(store.get(nameOf(2)), doctest::Contains(cutPath.c_str()), kj::Exception);
  CHECK_THROWS_WITH_AS(store.get(nameOf(3)), doctest::Contains(missingPath.c_str()), kj::Exception);
  store.add(writePack(store, 2, 3));
  CHECK(isWhole(store, 2));
  CHECK(isWhole(store, 3));
}

TEST_CASE("a process killed before it writes the index leaves a pack that the next collection removes") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  addPack(path, 1, 1);
  pid_t child = inChild([&] {
    ChunkStore store(path);
    writePack(store, 2, 3);
    raise(SIGKILL);
  });
  CHECK(WTERMSIG(statusOf(child)) == SIGKILL);
  CHECK(collect(path, {nameOf(1)}).packs == 1);
  ChunkStore store(path);
  CHECK(isWhole(store, 1));
  CHECK_FALSE(store.find(nameOf(2)));
}

TEST_CASE("several processes save and collect at the same time, and no saved chunk is lost") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  ChunkStore(path).key();
  constexpr uint64_t savers = 3, rounds = 8;
  // Names of saved chunks, one file per save, written while its packs are leased; they play the part of manifests.
  std::string names = scratch.path + "/names";
  std::filesystem::create_directory(names);
  std::vector<pid_t> children;
  for (uint64_t saver = 0; saver < savers; ++saver)
    children.push_back(inChild([&] {
      for (uint64_t round = 0; round < rounds; ++round) {
        ChunkStore store(path);
        std::map<ChunkName, StoredChunk> rows;
        for (uint64_t number = round; number < round + 4; ++number)  // some of which another saver may already have
          if (!store.find(nameOf(number))) rows.merge(writePack(store, number, number));
        store.add(rows);
        std::ofstream(names + "/" + std::to_string(saver) + "-" + std::to_string(round)) << round;
      }
    }));
  children.push_back(inChild([&] {
    for (uint64_t round = 0; round < 3 * rounds; ++round)
      ChunkStore(path).collect([&] {
        std::set<ChunkName> used;
        for (auto& entry : std::filesystem::directory_iterator(names)) {
          std::string name = entry.path().filename();
          uint64_t begin = std::stoul(name.substr(name.find('-') + 1));
          for (uint64_t number = begin; number < begin + 4; ++number) used.insert(nameOf(number));
        }
        return std::vector<ChunkName>(used.begin(), used.end());
      });
  }));
  for (pid_t child : children) CHECK(statusOf(child) == 0);
  ChunkStore store(path);
  for (uint64_t number = 0; number < rounds + 3; ++number) CHECK(isWhole(store, number));
}

TEST_CASE("a store with another format, without a format, or of another user is refused with the reason") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store", format = path + "/format";
  addPack(path, 1, 1);
  auto refusedAfter = [&](const std::string& damage) {
    std::string good = scratch.path + "/good";
    std::filesystem::copy_file(format, good, std::filesystem::copy_options::overwrite_existing);
    std::ofstream(format, std::ios::binary) << damage;
    std::string problem = problemOf(path);
    std::filesystem::copy_file(good, format, std::filesystem::copy_options::overwrite_existing);
    return problem;
  };
  CHECK(refusedAfter(std::string("vgpustor\2\0\0\0", 12) + std::string(16, 'k')).find("its format has version 2, and this build reads version 1") !=
        std::string::npos);
  CHECK(refusedAfter("vgpustor").find("altered or damaged") != std::string::npos);
  CHECK(refusedAfter(std::string(28, 'x')).find("altered or damaged") != std::string::npos);
  CHECK(problemOf(path) == "");
  std::filesystem::rename(format, scratch.path + "/away");
  CHECK(problemOf(path).find("its file format is missing") != std::string::npos);
  std::filesystem::rename(scratch.path + "/away", format);
  if (geteuid() == 0) {
    KJ_REQUIRE(chown(path.c_str(), 12345, 12345) == 0);
    CHECK(problemOf(path).find("belongs to user 12345") != std::string::npos);
  }
}

TEST_CASE("a file system that cannot hold a store is refused with the feature that it lacks") {
  for (uint32_t network : {0x6969u, 0xff534d42u, 0x01021997u})
    CHECK(unfitType(network).find("it is on a network file system") == 0);
  for (uint32_t local : {0xef53u, 0x58465342u, 0x01021994u, 0x9123683eu}) CHECK(unfitType(local) == "");
  ScratchDirectory scratch;
  CHECK(unfitFileSystem(scratch.path) == "");
  CHECK(namesIn(scratch.path).empty());
  CHECK(unfitFileSystem("/proc/self").find("making a file there") == 0);
  if (mount("vgpu-test", scratch.path.c_str(), "ramfs", 0, nullptr) != 0) return;  // only root may
  std::string problem = problemOf(scratch.path + "/store");
  CHECK(problem.find("parts of files cannot be freed") != std::string::npos);
  CHECK(problem.find("such as ext4, xfs") != std::string::npos);
  umount(scratch.path.c_str());
}

TEST_CASE("a truncated or invalid index is refused by name") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store", data = path + "/index/data.mdb";
  addPack(path, 1, 2);
  auto size = std::filesystem::file_size(data);
  std::filesystem::resize_file(data, size - 4096);
  CHECK(problemOf(path).find("it was truncated") != std::string::npos);
  std::ofstream(data, std::ios::binary) << std::string(size, 'x');
  CHECK(problemOf(path).find(path + "/index") != std::string::npos);
}

TEST_CASE("a snapshot's name leads to no other place") {
  for (const char* bad : {"", ".", "..", "../x", "a/b", ".hidden", "a b"})
    CHECK_THROWS_WITH_AS(ChunkStore::directoryOf("/s", bad), doctest::Contains("cannot name a snapshot"), kj::Exception);
  CHECK_THROWS_AS(ChunkStore::directoryOf("/s", std::string(101, 'a')), kj::Exception);
  CHECK(ChunkStore::directoryOf("/s", "app-1.b_C") == "/s/snapshots/app-1.b_C");
}

TEST_CASE("a snapshot's directory belongs to a store only if it is below the store's folder for snapshots") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  CHECK_FALSE(ChunkStore::around(path + "/snapshots/a"));
  ChunkStore(path).key();
  CHECK(ChunkStore::around(path + "/snapshots/a") == path);
  CHECK(ChunkStore::around(path + "/snapshots/a/") == path);
  CHECK(ChunkStore::around(path + "/snapshots/a/sessions/b") == path);
  CHECK_FALSE(ChunkStore::around(path + "/snapshots/a/sessions"));
  CHECK_FALSE(ChunkStore::around(path + "/packs/a"));
  CHECK_FALSE(ChunkStore::around(scratch.path + "/snapshots/a"));
}

TEST_CASE("a full disk is an error at the index too, and existing files stay") {
  SmallDisk disk("size=1m");
  if (!disk.mounted) return;
  std::string path = disk.scratch.path + "/store";
  addPack(path, 1, 1);
  {
    ChunkStore store(path);
    std::map<ChunkName, StoredChunk> rows = writePack(store, 2, 2);
    std::ofstream filler(disk.scratch.path + "/filler");
    while (filler << std::string(4096, 'x') << std::flush) continue;
    std::map<ChunkName, StoredChunk> many;
    for (uint64_t number = 2; number < 20000; ++number) many[nameOf(number)] = rows.begin()->second;
    CHECK_THROWS_WITH_AS(store.add(many), doctest::Contains("No space left on device"), kj::Exception);
  }
  std::filesystem::remove(disk.scratch.path + "/filler");
  CHECK(collect(path, {nameOf(1)}).packs == 1);
  ChunkStore store(path);
  CHECK(isWhole(store, 1));
  CHECK_FALSE(store.find(nameOf(3)));
}

TEST_CASE("a store that has lost its leases is refused, because its users are unknown") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  { ChunkStore made(path); }
  std::filesystem::remove(path + "/leases");
  CHECK_THROWS_WITH_AS(ChunkStore lost(path), doctest::Contains("leases is missing"), kj::Exception);
  CHECK_FALSE(std::filesystem::exists(path + "/leases"));
}
