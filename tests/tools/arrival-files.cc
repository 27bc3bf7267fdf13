#include "tools/vgpud/arrival-files.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/async-io.h>
#include <kj/exception.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "../scratch-directory.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;

struct Arriving : test::ScratchDirectory {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  FileWork work{4};
  ArrivalFiles files{work};

  Arriving() : ScratchDirectory("/tmp") { files.open(path, "session-1").wait(io.waitScope); }

  void put(const std::string& file, uint64_t offset, const std::string& text) {
    auto bytes = kj::heapArray<kj::byte>(reinterpret_cast<const kj::byte*>(text.data()), text.size());
    files.put(file, offset, kj::mv(bytes)).wait(io.waitScope);
  }
  bool refuses(const std::string& file) {
    return kj::runCatchingExceptions([&] { put(file, 0, "x"); }) != nullptr;
  }
  std::string content(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(files.path() + "/" + file).rdbuf();
    return text.str();
  }
};

// Receives the files that a DepartingFiles sends.
class Taking final : public control::Arrival::Server {
 public:
  Taking(ArrivalFiles& files, uint64_t& bytes) : files(files), bytes(bytes) {}
  kj::Promise<void> put(PutContext context) override {
    auto params = context.getParams();
    bytes += params.getBytes().size();
    return files.put(params.getFile(), params.getOffset(), kj::heapArray<kj::byte>(params.getBytes()));
  }

 private:
  ArrivalFiles& files;
  uint64_t& bytes;
};

kj::AutoCloseFd emptyMemory(off_t bytes) {
  kj::AutoCloseFd fd(memfd_create("vgpu-test", MFD_CLOEXEC));
  REQUIRE(ftruncate(fd, bytes) == 0);
  return fd;
}

}  // namespace

TEST_CASE("a file that is no longer awaited when it is complete is still removed") {
  kj::AsyncIoContext io = kj::setupAsyncIo();
  test::ScratchDirectory scratch("/tmp");
  FileWork work{1};
  ArrivalFiles files(work);
  { auto dropped = files.open(scratch.path, "session-1"); }
  StateDirectory::Shared made = files.discard().wait(io.waitScope);
  REQUIRE(made != nullptr);
  CHECK_EQ(made->remove(), "");
  CHECK(fs::is_empty(scratch.path));
}

TEST_CASE("pieces of a file are assembled, in whatever order they arrive") {
  Arriving arriving;
  arriving.put("manifest.json", 4, "-two");
  arriving.put("manifest.json", 0, "one,");
  CHECK(arriving.content("manifest.json") == "one,-two");
}

TEST_CASE("no file name leads out of the folder") {
  Arriving arriving;
  for (const char* name : {"../x", "/tmp/x", ".", "..", ".x", "a/b", "UPPER", "a b"}) CHECK(arriving.refuses(name));
  CHECK(arriving.refuses(std::string(65, 'a')));
  CHECK(arriving.refuses(std::string("a\0b", 3)));
  CHECK_FALSE(fs::exists(arriving.path + "/x"));
}

TEST_CASE("received parts of the host arena are written at their offsets, and nothing else is") {
  Arriving arriving;
  const off_t far = off_t{40} << 30;
  arriving.put("", 4096, "near");
  arriving.put("", static_cast<uint64_t>(far), "far");
  auto arena = emptyMemory(far + 4096);
  arriving.files.fillArena(arena).wait(arriving.io.waitScope);
  char text[8] = {};
  CHECK(pread(arena, text, 4, 4096) == 4);
  CHECK(std::string(text) == "near");
  CHECK(pread(arena, text, 4, far) == 4);
  CHECK(std::string(text) == "far");
  struct stat status;
  REQUIRE(fstat(arena, &status) == 0);
  CHECK(status.st_blocks * 512 < 1 << 20);
}

TEST_CASE("files are sent with the final part, not ahead") {
  test::ScratchDirectory source("/tmp");
  Arriving arriving;
  uint64_t bytes = 0;
  auto append = [&](const char* name, const std::string& text) {
    std::ofstream(source.path + "/" + name, std::ios::app) << text;
  };
  append("pack-00", "images");
  append("manifest.json.new", "");
  DepartingFiles departing(arriving.work, source.path, kj::AutoCloseFd());
  control::Arrival::Client arrival = kj::heap<Taking>(arriving.files, bytes);
  departing.sendAhead(arrival).wait(arriving.io.waitScope);
  CHECK(bytes == 0);
  append("pack-00", ", variables");
  append("objects", "older");
  departing.sendRest(arrival).wait(arriving.io.waitScope);
  CHECK(bytes == 6 + 11 + 5);
  CHECK(arriving.content("pack-00") == "images, variables");
  CHECK(arriving.content("objects") == "older");
}

TEST_CASE("only changed parts of a host arena that was sent ahead are sent again") {
  constexpr off_t arenaBytes = off_t{1} << 30, pieceAt = pieceBytes;
  test::ScratchDirectory source("/tmp");
  Arriving arriving;
  uint64_t bytes = 0;
  kj::AutoCloseFd arena = emptyMemory(arenaBytes), filled = emptyMemory(arenaBytes);
  auto write = [&](const std::string& text, off_t at) {
    REQUIRE(pwrite(arena, text.data(), text.size(), at) == static_cast<ssize_t>(text.size()));
  };
  DepartingFiles departing(arriving.work, source.path, kj::AutoCloseFd(dup(arena)));
  control::Arrival::Client arrival = kj::heap<Taking>(arriving.files, bytes);
  const std::string first(3 * pieceBytes, 'a');
  write(first, 10 * pieceAt);
  write("b", arenaBytes / 2);
  departing.sendAhead(arrival).wait(arriving.io.waitScope);
  CHECK(bytes == 4 * pieceBytes);
  write("changed", 11 * pieceAt + 5);
  write("new", arenaBytes - 3);
  REQUIRE(fallocate(arena, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, arenaBytes / 2, pieceAt) == 0);
  departing.sendRest(arrival).wait(arriving.io.waitScope);
  CHECK(bytes == 7 * pieceBytes);
  arriving.files.fillArena(filled).wait(arriving.io.waitScope);
  auto contentOf = [](int file, off_t at, size_t count) {
    std::string text(count, '?');
    REQUIRE(pread(file, text.data(), count, at) == static_cast<ssize_t>(count));
    return text;
  };
  for (off_t at : {10 * pieceAt, 11 * pieceAt, 12 * pieceAt, arenaBytes / 2, arenaBytes - pieceAt})
    CHECK(contentOf(filled, at, pieceBytes) == contentOf(arena, at, pieceBytes));
}

TEST_CASE("a discarded transfer leaves no files") {
  Arriving arriving;
  arriving.put("pack-00", 0, "bytes");
  auto made = arriving.files.discard().wait(arriving.io.waitScope);
  REQUIRE(made != nullptr);
  CHECK(made->remove() == "");
  CHECK(fs::is_empty(arriving.path));
}

}  // namespace vgpu::daemon
