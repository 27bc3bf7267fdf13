// The list's file: other processes, killed writers, full disks, and damaged files.
#include <doctest/doctest.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <new>
#include <string_view>

#include "../files.h"
#include "frames.h"
#include "vgpu/objects/list-copy.h"
#include "vgpu/objects/record-format.h"
#include "vgpu/objects/record-store.h"
#include "vgpu/wire/arena.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

uint64_t at(uint64_t index) { return address + index * 4096; }

// Runs `body` in a child process, which ends without running the parent's destructors; returns its process id. `body` returns 0 on success.
pid_t inChild(const std::function<int()>& body) {
  fflush(stdout);
  pid_t child = fork();
  if (child != 0) return child;
  int status = 99;
  try {
    status = body();
  } catch (const kj::Exception& e) {
    fprintf(stderr, "child: %s\n", e.getDescription().cStr());
  }
  _exit(status);
}

int statusOf(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// Puts raw bytes into the list's tables, as no ObjectList does.
void poke(const std::string& directory, const char* table, const std::string& key, const std::string& value) {
  MDB_env* environment;
  REQUIRE(mdb_env_create(&environment) == 0);
  mdb_env_set_maxdbs(environment, 2);
  REQUIRE(mdb_env_open(environment, (directory + "/objects").c_str(), 0, 0600) == 0);
  MDB_txn* txn;
  MDB_dbi dbi;
  REQUIRE(mdb_txn_begin(environment, nullptr, 0, &txn) == 0);
  REQUIRE(mdb_dbi_open(txn, table, MDB_CREATE, &dbi) == 0);
  MDB_val k{key.size(), const_cast<char*>(key.data())}, v{value.size(), const_cast<char*>(value.data())};
  REQUIRE(mdb_put(txn, dbi, &k, &v, 0) == 0);
  REQUIRE(mdb_txn_commit(txn) == 0);
  mdb_env_close(environment);
}

// A counter shared with child processes, until this process ends.
std::atomic<uint64_t>* sharedCounter() {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(page != MAP_FAILED);
  return new (page) std::atomic<uint64_t>(0);
}

void makeList(const std::string& directory, uint64_t allocations) {
  auto list = ObjectList::open(directory);
  for (uint64_t i = 0; i < allocations; i++) list->apply(memAlloc(64 * (i + 1), at(i)));
  list->commit();
}

}  // namespace

TEST_CASE("a reader in another process only sees whole commits, while the writer goes on") {
  ScratchDirectory scratch;
  makeList(scratch.path, 0);
  // After each commit the number of allocations is a multiple of ten.
  pid_t writer = inChild([&] {
    auto list = ObjectList::open(scratch.path);
    for (uint64_t i = 0; i < 3000; i++) {
      list->apply(memAlloc(64 * (i + 1), at(i)));
      if (i >= 500) list->apply(memFree(64 * (i + 1) + 32, at(i - 500)));
      if (i % 10 == 9) list->commit();
    }
    return 0;
  });
  size_t most = 0;
  for (int round = 0; round < 40; round++) {
    auto records = readAll(scratch.path);
    CHECK(records.size() % 10 == 0);
    for (size_t i = 1; i < records.size(); i++) CHECK(records[i].key() == records[i - 1].key() + 64);
    most = std::max(most, records.size());
  }
  CHECK(statusOf(writer) == 0);
  CHECK(readAll(scratch.path).size() == 500);
  CHECK(most <= 500);
}

TEST_CASE("a killed writer leaves its last commit, and the next writer continues from it") {
  for (int round = 0; round < 8; round++) {
    ScratchDirectory scratch;
    makeList(scratch.path, 0);
    int told[2];
    REQUIRE(pipe(told) == 0);
    pid_t writer = inChild([&] {
      auto list = ObjectList::open(scratch.path);
      for (uint64_t i = 0;; i++) {
        list->apply(memAlloc(64 * (i + 1), at(i)));
        if (i % 100 != 99) continue;
        list->commit();
        if (write(told[1], &i, sizeof i) != sizeof i) return 1;
      }
    });
    uint64_t last = 0;
    for (int commits = 0; commits <= round; commits++) REQUIRE(read(told[0], &last, sizeof last) == sizeof last);
    usleep(static_cast<useconds_t>(300 * round));
    REQUIRE(kill(writer, SIGKILL) == 0);
    CHECK(statusOf(writer) == 1000 + SIGKILL);
    close(told[0]);
    close(told[1]);
    size_t found = readAll(scratch.path).size();
    CHECK(found % 100 == 0);
    CHECK(found > last);
    auto list = ObjectList::open(scratch.path);
    CHECK(list->size() == found);
    list->apply(memFree(uint64_t{1} << 40, at(0)));
    list->commit();
    list.reset();
    CHECK(readAll(scratch.path).size() == found - 1);
  }
}

TEST_CASE("the list grows past its first size, even with a reader that opened it before") {
  ScratchDirectory scratch;
  makeList(scratch.path, 1);
  uint64_t modules = 600;  // names of 48 KiB: about 29 MB
  pid_t writer = inChild([&] {
    auto list = ObjectList::open(scratch.path);
    list->apply(moduleLoad(1'000'000, 1));
    for (uint64_t i = 0; i < modules; i++) {
      list->apply(moduleFunction(1'000'064 + i, 100 + i, 1, std::string(48 * 1024, 'f')));
      if (i % 20 == 19) list->commit();
    }
    return 0;
  });
  RecordStore reader(scratch.path, RecordStore::Access::read);
  size_t count = 0, bytes = 0;
  CHECK(statusOf(writer) == 0);
  reader.read([&](uint64_t, kj::ArrayPtr<const kj::byte> record) {
    count++;
    bytes += record.size();
  });
  CHECK(count == modules + 2);
  CHECK(bytes > (size_t{16} << 20));
}

TEST_CASE("a full disk makes the commit fail, and the batch is kept for the next one") {
  SmallDisk disk("size=1m");
  if (!disk.mounted) return;  // only root may mount
  auto list = ObjectList::open(disk.scratch.path);
  list->apply(memAlloc(64, at(0)));
  list->commit();
  std::string placeholder = disk.scratch.path + "/filler";
  {
    std::ofstream file(placeholder);
    std::string block(4096, 'x');
    while (file.write(block.data(), 4096).flush()) {
    }
  }
  for (uint64_t i = 1; i < 1000; i++) list->apply(memAlloc(64 * (i + 1), at(i)));
  for (int attempt = 0; attempt < 3; attempt++)
    CHECK_THROWS_WITH_AS(list->commit(), doctest::Contains("No space left on device"), kj::Exception);
  pid_t reader = inChild([&] { return readAll(disk.scratch.path).size() == 1 ? 0 : 1; });
  CHECK(statusOf(reader) == 0);
  std::filesystem::remove(placeholder);
  list->apply(memFree(1'000'000, at(5)));
  list->commit();
  list.reset();
  CHECK(readAll(disk.scratch.path).size() == 999);
}

TEST_CASE("a list that would exceed a session's limit refuses the commit, and goes on when objects are gone") {
  ScratchDirectory scratch;
  constexpr uint64_t most = 1 * MiB;
  auto list = ObjectList::open(scratch.path, most);
  list->apply(moduleLoad(64, 1));
  list->commit();
  auto add = [&](uint64_t handle) { list->apply(moduleFunction(128 + handle, handle, 1, std::string(16 * KiB, 'f'))); };
  for (uint64_t handle = 100; handle < 200; handle++) add(handle);
  CHECK_THROWS_WITH_AS(list->commit(), doctest::Contains("would grow past 1 MiB"), kj::Exception);
  CHECK(std::filesystem::file_size(scratch.path + "/objects/data.mdb") <= most);
  list->apply(moduleUnload(10'000, 1));
  list->commit();
  list->apply(moduleLoad(20'000, 2));
  list->commit();
  list.reset();
  CHECK(readAll(scratch.path).size() == 1);
}

TEST_CASE("a copied list is one whole commit of its writer, who goes on") {
  ScratchDirectory scratch;
  makeList(scratch.path, 0);
  std::atomic<uint64_t>& copies = *sharedCounter();
  pid_t writer = inChild([&] {
    auto list = ObjectList::open(scratch.path);
    for (uint64_t i = 0; copies < 20 && i < 1'000'000; i++) {
      list->apply(memAlloc(64 * (i + 1), at(i)));
      if (i >= 500) list->apply(memFree(64 * (i + 1) + 32, at(i - 500)));
      if (i % 10 == 9) list->commit();
      if (i % 100 == 99) usleep(2000);
    }
    return 0;
  });
  while (copies < 20) {
    size_t count = 0;
    try {
      readObjectsCopied(scratch.path, [&](ObjectRecord&&) { ++count; });
    } catch (const kj::Exception& exception) {  // if the copy is slow (sanitizers), the writer may finish first
      REQUIRE(std::string_view(exception.getDescription().cStr()).ends_with("try again"));
      continue;
    }
    CHECK(count % 10 == 0);
    ++copies;
  }
  CHECK(statusOf(writer) == 0);
}

TEST_CASE("a copy is made while the writer runs, writes nothing to the source, follows no link and is bounded") {
  ScratchDirectory scratch;
  auto list = ObjectList::open(scratch.path);
  list->apply(memAlloc(64, at(0)));
  list->commit();
  std::string objects = scratch.path + "/objects", data = objects + "/data.mdb";
  auto names = namesIn(objects);
  auto copied = [&] {
    size_t count = 0;
    readObjectsCopied(scratch.path, [&](ObjectRecord&&) { ++count; });
    return count;
  };
  CHECK(copied() == 1);
  CHECK(namesIn(objects) == names);
  CHECK_THROWS_WITH_AS(copyObjectList(scratch.path, 4096), doctest::Contains("is larger than"), kj::Exception);
  std::filesystem::rename(data, scratch.path + "/moved");
  std::filesystem::create_symlink(scratch.path + "/moved", data);
  CHECK_THROWS_WITH_AS(copied(), doctest::Contains("data.mdb"), kj::Exception);
  std::filesystem::remove(data);
  std::filesystem::create_directory(data);
  CHECK_THROWS_WITH_AS(copied(), doctest::Contains("not a regular file"), kj::Exception);
  std::filesystem::rename(objects, scratch.path + "/elsewhere");
  std::filesystem::create_directory_symlink(scratch.path + "/elsewhere", objects);
  CHECK_THROWS_WITH_AS(copied(), doctest::Contains("there is no object list in"), kj::Exception);
}

TEST_CASE("a list has one writer at a time") {
  ScratchDirectory scratch;
  auto list = ObjectList::open(scratch.path);
  CHECK_THROWS_WITH_AS(ObjectList::open(scratch.path), doctest::Contains("another process writes it"), kj::Exception);
  CHECK_THROWS_WITH_AS(readAll(scratch.path), doctest::Contains("open in this process already"), kj::Exception);
}

TEST_CASE("reading a list that does not exist says so") {
  ScratchDirectory scratch;
  CHECK_THROWS_WITH_AS(readAll(scratch.path), doctest::Contains("there is no object list in"), kj::Exception);
  CHECK_THROWS_WITH_AS(ObjectList::open(scratch.path + "/absent"), doctest::Contains("No such file or directory"),
                       kj::Exception);
}

TEST_CASE("a list of another format version is refused by name") {
  ScratchDirectory scratch;
  makeList(scratch.path, 1);
  std::string meta("vgpuobjs\x09\0\0\0\0\0\0\0", 16);
  poke(scratch.path, "meta", "format", meta);
  CHECK_THROWS_WITH_AS(readAll(scratch.path), doctest::Contains("has format version 9; this build reads version 3"),
                       kj::Exception);
  CHECK_THROWS_AS(ObjectList::open(scratch.path), kj::Exception);
}

TEST_CASE("a file that is not a list is refused") {
  ScratchDirectory scratch;
  std::filesystem::create_directory(scratch.path + "/objects");
  std::ofstream(scratch.path + "/objects/data.mdb") << std::string(8192, '#');
  CHECK_THROWS_AS(readAll(scratch.path), kj::Exception);
  CHECK_THROWS_AS(ObjectList::open(scratch.path), kj::Exception);
}

TEST_CASE("an invalid record is refused, whichever bit of it was changed") {
  ObjectRecord record;
  record.id = {api::Kind::FUNCTION, 11};
  record.parented = true;
  record.needs.push_back({{api::Kind::MODULE, 1}, 64});
  record.recipe.push_back(moduleFunction(128, 11, 1));
  auto good = encodeRecord(record);
  CHECK(decodeRecord(good.asBytes()).id == record.id);
  std::string bytes(good.asChars().begin(), good.asChars().size());
  size_t refused = 0;
  for (size_t bit = 0; bit < bytes.size() * 8; bit++) {
    std::string bad = bytes;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    kj::ArrayPtr<const kj::byte> view(reinterpret_cast<const kj::byte*>(bad.data()), bad.size());
    try {
      decodeRecord(view);  // some bits are data: a name, or a handle of another object
    } catch (const kj::Exception&) {
      refused++;
    }
  }
  CHECK(refused > bytes.size());
  for (size_t size = 0; size < bytes.size(); size++) {
    CAPTURE(size);
    CHECK_THROWS_AS(decodeRecord({reinterpret_cast<const kj::byte*>(bytes.data()), size}), kj::Exception);
  }
}

TEST_CASE("records that contradict each other or their key are refused") {
  ScratchDirectory scratch;
  makeList(scratch.path, 1);
  ObjectRecord record;
  record.id = {api::Kind::MEMORY, at(7)};
  record.recipe.push_back(memAlloc(640, at(7)));
  auto encoded = encodeRecord(record);
  std::string value(encoded.asChars().begin(), encoded.asChars().size());
  poke(scratch.path, "records", std::string("\0\0\0\0\0\0\x02\x81", 8), value);  // key 641; the record says 640
  CHECK_THROWS_WITH_AS(readAll(scratch.path), doctest::Contains("under another record's key"), kj::Exception);
  poke(scratch.path, "records", "short", value);
  CHECK_THROWS_AS(readAll(scratch.path), kj::Exception);
}
