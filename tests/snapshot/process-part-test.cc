// The part of a snapshot that holds a process: its list, its image's checksums, and its records of mapped files.
#include "vgpu/snapshot/process-part.h"

#include <doctest/doctest.h>
#include <kj/debug.h>

#include "../files.h"

using namespace vgpu;
using namespace vgpu::snapshot;
using namespace vgpu::test;

namespace {

template <typename Act>
std::string refusal(Act act) {
  KJ_IF_MAYBE (exception, kj::runCatchingExceptions(act)) return exception->getDescription().cStr();
  return "";
}

struct Saved {
  ScratchDirectory scratch;
  const std::string& directory = scratch.path;
  const std::string folder = processFolderOf(directory);
  ProcessPart part;

  Saved() {
    std::filesystem::create_directory(folder);
    writeFile(folder + "/pages-1.img", std::string(3 << 20, 'p'));
    writeFile(folder + "/core-7.img", "core");
    writeFile(folder + "/stats", "no image");
    part = {.criu = "4.1.1",
            .pid = 7,
            .processes = {{7, "bash"}, {8, "app"}},
            .threads = {7, 8, 9},
            .stopped = {8},
            .shellJob = true,
            .images = sumImages(folder),
            .mapped = {{"/lib/a", 10, "build id 01"}, {"/data", 20, ""}},
            .pipes = {{1, "pipe:[5]"}},
            .sessions = {{"abc1", 8, {30, "f0"}}}};
  }
  ProcessSum write(const std::string& text) const {
    writeFile(folder + "/" + processList, text);
    return {{text.size(), checksumOf(bytesOf(text))}, 0};
  }
};

}  // namespace

TEST_CASE("a process part is read back as it was written") {
  Saved saved;
  CHECK(saved.part.images.size() == 2);
  auto read = readProcessPart(saved.directory, saved.write(encodeProcessPart(saved.part)));
  CHECK(read.criu == "4.1.1");
  CHECK(read.pid == 7);
  CHECK(read.processes == saved.part.processes);
  CHECK(read.threads == saved.part.threads);
  CHECK(read.stopped == saved.part.stopped);
  CHECK(read.sessions == saved.part.sessions);
  CHECK(read.shellJob);
  CHECK(read.images == saved.part.images);
  CHECK(read.mapped == saved.part.mapped);
  CHECK(read.pipes == saved.part.pipes);
  uint64_t bytes = 0;
  verifyImages(saved.directory, read, [&](uint64_t more) { bytes += more; });
  CHECK(bytes == (3 << 20) + 4);
}

TEST_CASE("an invalid list of a process is refused with the field's name") {
  Saved saved;
  std::string text = encodeProcessPart(saved.part);
  auto refusedWith = [&](const std::string& from, const std::string& to, const char* check) {
    std::string changed = text;
    size_t at = changed.find(from);
    REQUIRE(at != changed.npos);
    changed.replace(at, from.size(), to);
    auto sum = saved.write(changed);
    CHECK(refusal([&] { readProcessPart(saved.directory, sum); }).find(check) != std::string::npos);
  };
  refusedWith("vgpu-process", "vgpu-session", "it does not describe a process");
  refusedWith("\"version\": 2", "\"version\": 1", "format version 1, and this build reads version 2");
  refusedWith("\"pid\": 7", "\"pid\": -7", "field pid");
  refusedWith("\"threads\"", "\"strands\"", "field threads");
  refusedWith("\"processes\": [", "\"processes\": [{\"pid\": 8, \"name\": \"\"}, ", "processes: the first is not the one of field pid");
  refusedWith("\"stopped\": [", "\"stopped\": [\"a\", ", "field stopped");
  refusedWith("abc1", "../abc1", "sessions: ../abc1 is no name of one");
  refusedWith("core-7.img", "../core.img", "images: ../core.img is no name of one");
  refusedWith("\"path\": \"/lib/a\"", "\"path\": 3", "field path");
}

// Golden test: a change here is a change of the format; raise its version and update docs/processes.md.
TEST_CASE("the list of a process is written in the format of version 2") {
  Saved saved;
  saved.part.images = {{"core-7.img", {4, "ab"}}};
  CHECK(encodeProcessPart(saved.part) == R"({
 "criu": "4.1.1",
 "format": "vgpu-process",
 "images": {
  "core-7.img": {
   "bytes": 4,
   "xxh3": "ab"
  }
 },
 "mapped": [
  {
   "bytes": 10,
   "identity": "build id 01",
   "path": "/lib/a"
  },
  {
   "bytes": 20,
   "identity": "",
   "path": "/data"
  }
 ],
 "pid": 7,
 "pipes": [
  {
   "descriptor": 1,
   "name": "pipe:[5]"
  }
 ],
 "processes": [
  {
   "name": "bash",
   "pid": 7
  },
  {
   "name": "app",
   "pid": 8
  }
 ],
 "sessions": [
  {
   "bytes": 30,
   "pid": 8,
   "session": "abc1",
   "xxh3": "f0"
  }
 ],
 "shellJob": true,
 "stopped": [
  8
 ],
 "threads": [
  7,
  8,
  9
 ],
 "version": 2
}
)");
}

TEST_CASE("the snapshots of other sessions are found by name, and one that is not the saved one is refused") {
  Saved saved;
  std::string folder = sessionFolderOf(saved.directory, "abc1");
  CHECK(sessionsIn(saved.directory).empty());
  std::filesystem::create_directories(folder);
  CHECK(sessionsIn(saved.directory).empty());  // it is incomplete
  writeFile(folder + "/" + manifestFile, "one");
  std::filesystem::create_directories(sessionFolderOf(saved.directory, "No-Session"));
  writeFile(sessionFolderOf(saved.directory, "No-Session") + "/" + manifestFile, "one");
  CHECK(sessionsIn(saved.directory) == std::vector<std::string>{"abc1"});
  saved.part.sessions = {describeSession(saved.directory, "abc1", 8)};
  verifySessions(saved.directory, saved.part);
  writeFile(folder + "/" + manifestFile, "two");
  CHECK(refusal([&] { verifySessions(saved.directory, saved.part); }).find("abc1: file manifest.json: checksum") !=
        std::string::npos);
}

TEST_CASE("an image that was altered, truncated or removed is found and named") {
  Saved saved;
  auto damage = [&] { return refusal([&] { verifyImages(saved.directory, saved.part, [](uint64_t) {}); }); };
  std::string pages = readFile(saved.folder + "/pages-1.img");
  pages[2 << 20] = 'q';
  writeFile(saved.folder + "/pages-1.img", pages);
  CHECK(damage().find("file pages-1.img: checksum") != std::string::npos);
  writeFile(saved.folder + "/pages-1.img", pages.substr(1));
  CHECK(damage().find("file pages-1.img: length") != std::string::npos);
  std::filesystem::remove(saved.folder + "/core-7.img");
  CHECK(damage().find("file core-7.img: cannot be opened") != std::string::npos);
}

TEST_CASE("an ELF file is identified by its build id, another file by its content, and one that the process writes by its size") {
  auto own = describeMapped("/proc/self/exe", false);
  CHECK(own.identity.starts_with("build id "));
  CHECK(own.identity.size() == 9 + 40);
  ScratchDirectory scratch;
  std::string path = scratch.path + "/data";
  writeFile(path, "some data");
  auto before = describeMapped(path, false);
  CHECK(before.identity.starts_with("xxh3 "));
  writeFile(path, "same size");
  CHECK(describeMapped(path, false).bytes == before.bytes);
  CHECK(describeMapped(path, false).identity != before.identity);
  CHECK(describeMapped(path, true) == MappedFile{path, 9, ""});
  writeFile(path,
            "\x7f"
            "ELF, but cut off");
  CHECK(describeMapped(path, false).identity.starts_with("xxh3 "));
}
