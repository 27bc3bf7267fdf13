#include "tools/vgpud/host-arena-file.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/debug.h>
#include <kj/io.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../scratch-directory.h"
#include "vgpu/base/sizes.h"
#include "vgpu/wire/arena.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;

struct Folder : test::ScratchDirectory {
  Folder() : ScratchDirectory("/tmp") {}
  fs::path file() const { return fs::path(path) / hostArenaFile; }
};

kj::AutoCloseFd makeArena() {
  int fd;
  KJ_SYSCALL(fd = memfd_create("arena", MFD_CLOEXEC));
  kj::AutoCloseFd arena(fd);
  KJ_SYSCALL(ftruncate(arena, static_cast<off_t>(hostArenaBytes)));
  return arena;
}

void put(int arena, uint64_t at, const std::string& bytes) {
  KJ_REQUIRE(pwrite(arena, bytes.data(), bytes.size(), static_cast<off_t>(at)) == static_cast<ssize_t>(bytes.size()));
}

std::string get(int arena, uint64_t at, size_t bytes) {
  std::string text(bytes, 'x');
  KJ_REQUIRE(pread(arena, text.data(), bytes, static_cast<off_t>(at)) == static_cast<ssize_t>(bytes));
  return text;
}

const std::string far(1 * MiB, 'f');

void saveSome(const Folder& folder) {
  kj::AutoCloseFd arena = makeArena();
  put(arena, 4096, "near");
  put(arena, 40 * GiB, far);
  saveHostArena(arena, folder.path);
}

std::string problemOf(const Folder& folder) {
  kj::AutoCloseFd arena = makeArena();
  auto caught = kj::runCatchingExceptions([&] { loadHostArena(folder.path, arena); });
  KJ_IF_MAYBE (exception, caught) return exception->getDescription().cStr();
  return "";
}

void change(const fs::path& file, uint64_t at, const std::string& bytes) {
  std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
  stream.seekp(static_cast<std::streamoff>(at));
  stream << bytes;
}

}  // namespace

TEST_CASE("pinned memory is restored from its file at its offsets") {
  Folder folder;
  saveSome(folder);
  CHECK(fs::file_size(folder.file()) < 4 * MiB);
  kj::AutoCloseFd arena = makeArena();
  loadHostArena(folder.path, arena);
  CHECK(get(arena, 4096, 4) == "near");
  CHECK(get(arena, 40 * GiB, far.size()) == far);
  CHECK(get(arena, 1 * GiB, 8) == std::string(8, 0));
}

TEST_CASE("an unused arena has a file too") {
  Folder folder;
  saveHostArena(makeArena(), folder.path);
  CHECK(problemOf(folder).empty());
}

TEST_CASE("a file of pinned memory that is truncated, changed or another file is refused") {
  Folder folder;
  SUBCASE("truncated") {
    saveSome(folder);
    fs::resize_file(folder.file(), fs::file_size(folder.file()) - 1);
    CHECK(problemOf(folder).find("truncated") != std::string::npos);
  }
  SUBCASE("changed") {
    saveSome(folder);
    change(folder.file(), 100, "?");
    CHECK(problemOf(folder).find("checksum") != std::string::npos);
  }
  SUBCASE("of another version") {
    saveSome(folder);
    change(folder.file(), 8, "\2");
    CHECK(problemOf(folder).find("version 2") != std::string::npos);
  }
  SUBCASE("something else") {
    std::ofstream(folder.file()) << std::string(100, 'a');
    CHECK(problemOf(folder).find("does not contain the pinned memory") != std::string::npos);
  }
  SUBCASE("a piece outside of the arena") {
    saveSome(folder);
    change(folder.file(), 16, std::string(8, '\xff'));
    CHECK(problemOf(folder).find("larger than") != std::string::npos);
  }
  SUBCASE("none") { CHECK(problemOf(folder).find("cannot be opened") != std::string::npos); }
}

}  // namespace vgpu::daemon
