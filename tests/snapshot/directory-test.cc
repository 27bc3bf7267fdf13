// A snapshot's directory: it is complete or absent, and contains only regular files of the right size and content.
#include "vgpu/snapshot/snapshot-reader.h"
#include "vgpu/snapshot/snapshot-writer.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../files.h"

using namespace vgpu;
using namespace vgpu::snapshot;
using namespace vgpu::test;

namespace {

int syncs = 0;

unsigned modeOf(const std::string& path) {
  struct stat status;
  REQUIRE(stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

FileSum sumOf(const std::string& text) { return {text.size(), checksumOf(bytesOf(text))}; }

}  // namespace

// Replaces the C library's fsync: counts syncs.
extern "C" int fsync(int file) {
  ++syncs;
  return static_cast<int>(syscall(SYS_fsync, file));
}

TEST_CASE("a snapshot syncs its files only if asked to") {
  ScratchDirectory scratch;
  auto syncsOf = [&](const std::string& name, Durability durability) {
    SnapshotTarget target(scratch.path + name);
    SnapshotWriter directory(kj::AutoCloseFd(dup(target.fd())), scratch.path + name, durability);
    syncs = 0;
    for (auto& pack : directory.openPacks()) {
      pack.append(bytesOf("chunk"));
      pack.finish();
    }
    directory.write(objectsFile, bytesOf("hello"));
    directory.publish("the manifest");
    CHECK(readFile(scratch.path + name + "/" + manifestFile) == "the manifest");
    return syncs;
  };
  CHECK(syncsOf("/kept", Durability::synced) > 0);
  CHECK(syncsOf("/moved", Durability::unsynced) == 0);
}

TEST_CASE("a published snapshot exists, readable by its owner only") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/snapshot";
  {
    SnapshotWriter directory(path);
    CHECK(directory.write(objectsFile, bytesOf("hello")) == sumOf("hello"));
    CHECK_FALSE(std::filesystem::exists(path + "/" + manifestFile));
    directory.publish("the manifest");
  }
  std::set<std::string> names{"objects", "chunks", "pending-calls", "output", "manifest.json"};
  for (unsigned pack = 0; pack < packsHere(); ++pack) names.insert(packFile(pack));
  CHECK(namesIn(path) == names);
  CHECK(readFile(path + "/manifest.json") == "the manifest");
  CHECK(modeOf(path) == 0700);
  CHECK(modeOf(path + "/objects") == 0600);
  CHECK(modeOf(path + "/manifest.json") == 0600);
}

TEST_CASE("an unpublished snapshot is removed, including a directory that was made for it") {
  ScratchDirectory scratch;
  { SnapshotWriter(scratch.path + "/new").write(objectsFile, bytesOf("hello")); }
  CHECK(namesIn(scratch.path).empty());
  std::filesystem::create_directory(scratch.path + "/old");
  chmod((scratch.path + "/old").c_str(), 0755);
  { SnapshotWriter(scratch.path + "/old").write(objectsFile, bytesOf("hello")); }
  CHECK(namesIn(scratch.path + "/old").empty());
  CHECK(modeOf(scratch.path + "/old") == 0755);
}

TEST_CASE("a directory that is not empty is refused and left alone") {
  ScratchDirectory scratch;
  writeFile(scratch.path + "/thesis.tex", "x");
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(scratch.path), doctest::Contains("it holds thesis.tex"), kj::Exception);
  CHECK(readFile(scratch.path + "/thesis.tex") == "x");
}

TEST_CASE("files of a killed save are replaced; foreign files are not") {
  ScratchDirectory scratch;
  auto leave = [&] {
    writeFile(scratch.path + "/manifest.json.new", "");
    writeFile(scratch.path + "/chunks", "half of th");
  };
  leave();
  SnapshotWriter(scratch.path).write(chunksFile, bytesOf("the whole"));
  CHECK(namesIn(scratch.path).empty());
  leave();
  writeFile(scratch.path + "/thesis.tex", "x");
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(scratch.path), doctest::Contains("it holds thesis.tex"), kj::Exception);
  CHECK(readFile(scratch.path + "/chunks") == "half of th");
}

TEST_CASE("a directory that cannot be taken keeps its mode, and one that was made for the snapshot is removed") {
  ScratchDirectory scratch;
  std::string old = scratch.path + "/old";
  std::filesystem::create_directories(old + "/chunks");  // has a name that vgpu uses, but is not a file that could be removed
  writeFile(old + "/manifest.json.new", "");
  chmod(old.c_str(), 0755);
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(old), doctest::Contains("Is a directory"), kj::Exception);
  CHECK(modeOf(old) == 0755);

  rlimit limit, none;
  getrlimit(RLIMIT_NOFILE, &limit);
  none = limit;
  int next = dup(0);
  none.rlim_cur = static_cast<rlim_t>(next) + 1;  // enough for the directory, too few for a file in it
  close(next);
  // Set inside, because undefined behaviour sanitizer's check of KJ's objects needs descriptors too.
  auto caught = kj::runCatchingExceptions([&] {
    setrlimit(RLIMIT_NOFILE, &none);
    KJ_DEFER(setrlimit(RLIMIT_NOFILE, &limit));
    SnapshotWriter directory(scratch.path + "/new");
  });
  REQUIRE(caught != nullptr);
  CHECK(std::string(KJ_ASSERT_NONNULL(caught).getDescription().cStr()).find("Too many open files") !=
        std::string::npos);
  CHECK(namesIn(scratch.path) == std::set<std::string>{"old"});
}

TEST_CASE("a finished snapshot is never replaced") {
  ScratchDirectory scratch;
  SnapshotWriter(scratch.path).publish("the manifest");
  CHECK_THROWS_AS(SnapshotWriter directory(scratch.path), kj::Exception);
  CHECK(readFile(scratch.path + "/manifest.json") == "the manifest");
}

TEST_CASE("two snapshots are not written into one directory at the same time") {
  ScratchDirectory scratch;
  SnapshotWriter first(scratch.path);
  CHECK_THROWS_WITH_AS(SnapshotWriter second(scratch.path), doctest::Contains("another suspend is writing there"), kj::Exception);
  first.publish("the manifest");
  CHECK(readFile(scratch.path + "/manifest.json") == "the manifest");
}

TEST_CASE("foreign files beside a snapshot's, or in place of them, stay when the snapshot is abandoned") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/snapshot";
  {
    SnapshotTarget target(path);
    writeFile(path + "/thesis.tex", "x");
    std::filesystem::remove(path + "/chunks");
    writeFile(path + "/chunks", "somebody else's");
  }
  CHECK(namesIn(path) == std::set<std::string>{"thesis.tex", "chunks"});
  CHECK(readFile(path + "/chunks") == "somebody else's");
}

TEST_CASE("a published snapshot is removed too if its target is not kept") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/snapshot";
  {
    SnapshotTarget target(path);
    SnapshotWriter(kj::AutoCloseFd(dup(target.fd())), path).publish("the manifest");
    CHECK(std::filesystem::exists(path + "/" + manifestFile));
  }
  CHECK(namesIn(scratch.path).empty());
}

TEST_CASE("a target is locked as long as its writer lives") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/snapshot";
  std::filesystem::create_directory(path);
  auto target = std::make_unique<SnapshotTarget>(path);
  auto writer = std::make_unique<SnapshotWriter>(kj::AutoCloseFd(dup(target->fd())), path);
  target.reset();
  CHECK_THROWS_WITH_AS(SnapshotTarget second(path), doctest::Contains("another suspend is writing there"), kj::Exception);
  writer.reset();
  SnapshotTarget third(path);
}

TEST_CASE("a path that cannot be a directory is refused with the reason") {
  ScratchDirectory scratch;
  writeFile(scratch.path + "/file", "x");
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(scratch.path + "/file"), doctest::Contains("Not a directory"),
                       kj::Exception);
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(scratch.path + "/absent/below"), doctest::Contains("No such file"),
                       kj::Exception);
  CHECK(readFile(scratch.path + "/file") == "x");
}

TEST_CASE("a read-only disk is refused with the reason") {
  SmallDisk disk("size=1m");
  if (!disk.mounted) return;  // only root may mount
  std::filesystem::create_directory(disk.scratch.path + "/empty");
  disk.makeReadOnly();
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(disk.scratch.path + "/new"), doctest::Contains("Read-only file system"),
                       kj::Exception);
  CHECK_THROWS_WITH_AS(SnapshotWriter directory(disk.scratch.path + "/empty"), doctest::Contains("Read-only file system"),
                       kj::Exception);
}

TEST_CASE("a disk that becomes full is an error that names the file, and no file is left") {
  SmallDisk disk("size=1m");
  if (!disk.mounted) return;
  std::string path = disk.scratch.path + "/snapshot";
  std::vector<std::byte> much(4 << 20);
  {
    SnapshotWriter directory(path);
    directory.write(objectsFile, bytesOf("hello"));
    CHECK_THROWS_WITH_AS(directory.write(chunksFile, much),
                         doctest::Contains("/snapshot/chunks: No space left on device"), kj::Exception);
  }
  CHECK(namesIn(disk.scratch.path).empty());
}

TEST_CASE("a file of another size or content is refused with its name and the check that failed") {
  ScratchDirectory scratch;
  writeFile(scratch.path + "/objects", "hello");
  SnapshotReader directory(scratch.path);
  auto whole = directory.readWhole(objectsFile, sumOf("hello"), 100);
  CHECK(whole.size() == 5);
  CHECK_THROWS_WITH_AS(directory.readWhole(objectsFile, sumOf("hello!"), 100),
                       doctest::Contains("file objects: length: 6 bytes are expected, 5 are found"), kj::Exception);
  CHECK_THROWS_WITH_AS(directory.readWhole(objectsFile, sumOf("hallo"), 100),
                       doctest::Contains("file objects: checksum"), kj::Exception);
  CHECK_THROWS_WITH_AS(directory.readWhole(objectsFile, sumOf("hello"), 4), doctest::Contains("at most 4"),
                       kj::Exception);
  CHECK_THROWS_WITH_AS(directory.readWhole(pendingCallsFile, sumOf("hello"), 100),
                       doctest::Contains("file pending-calls: cannot be opened: No such file"), kj::Exception);
}

TEST_CASE("a symbolic link is not followed") {
  ScratchDirectory scratch;
  writeFile(scratch.path + "/secret", "hello");
  std::string path = scratch.path + "/snapshot";
  std::filesystem::create_directory(path);
  std::filesystem::create_symlink("../secret", path + "/objects");
  std::filesystem::create_directory(path + "/pending-calls");
  REQUIRE(mkfifo((path + "/manifest.json").c_str(), 0600) == 0);
  SnapshotReader directory(path);
  CHECK_THROWS_WITH_AS(directory.readWhole(objectsFile, sumOf("hello"), 100), doctest::Contains("cannot be opened"),
                       kj::Exception);
  CHECK_THROWS_WITH_AS(directory.readWhole(pendingCallsFile, sumOf("hello"), 100), doctest::Contains("not a regular file"),
                       kj::Exception);
  CHECK_THROWS_WITH_AS(directory.readManifest(100), doctest::Contains("not a regular file"), kj::Exception);
}

TEST_CASE("the checksum of pieces equals the checksum of the whole") {
  auto bytes = randomBytes(100'000, 1);
  Checksum pieces;
  for (size_t at = 0; at < bytes.size(); at += 777)
    pieces.add(std::span(bytes).subspan(at, std::min<size_t>(777, bytes.size() - at)));
  CHECK(pieces.text() == checksumOf(bytes));
  CHECK(checksumOf(bytes).size() == 32);
}
