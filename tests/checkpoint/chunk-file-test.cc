#include "checkpoint/chunk-file.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>

#include "../files.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

using Items = std::vector<std::vector<std::byte>>;

ChunkPlan planOf(const Items& items) {
  std::vector<uint64_t> sizes;
  for (auto& item : items) sizes.push_back(item.size());
  return ChunkPlan(sizes);
}

// One for all cases: its buffers take longer to make than most files here to read.
Pipeline& pipeline() {
  static Pipeline shared(nullptr);
  return shared;
}

// Writes `items` as the file `bytes` of a directory without a manifest.
FileSum write(const std::string& path, const Items& items) {
  SnapshotWriter directory(path);
  FileWriter file = directory.create(bytesFile);
  writeChunks(pipeline(), file, planOf(items), [&](const Piece& piece, std::byte* out) {
    std::memcpy(out, items[piece.item].data() + piece.offset, piece.bytes);
  });
  FileSum sum = file.finish();
  directory.publish("");
  return sum;
}

Items read(const std::string& path, const FileSum& sum, const Items& like) {
  FileReader file = SnapshotReader(path).open(bytesFile, sum);
  Items items;
  for (auto& item : like) items.emplace_back(item.size(), std::byte{0x55});
  readChunks(pipeline(), file, planOf(like), [&](const Piece& piece, const std::byte* bytes) {
    std::byte* out = items[piece.item].data() + piece.offset;
    if (bytes == nullptr) {
      std::memset(out, 0, piece.bytes);
    } else {
      std::memcpy(out, bytes, piece.bytes);
    }
  });
  return items;
}

// Threads get such large stacks, and the process so little more address space, that a second one finds no room.
class RoomForOneThread {
 public:
  RoomForOneThread() {
    pthread_getattr_default_np(&usual);
    pthread_attr_t large;
    pthread_getattr_default_np(&large);
    pthread_attr_setstacksize(&large, stackBytes);
    pthread_setattr_default_np(&large);
    pthread_attr_destroy(&large);
    uint64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    getrlimit(RLIMIT_AS, &before);
    rlimit less = before;
    less.rlim_cur = pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE)) + stackBytes * 3 / 2;
    setrlimit(RLIMIT_AS, &less);
  }
  ~RoomForOneThread() {
    setrlimit(RLIMIT_AS, &before);
    pthread_setattr_default_np(&usual);
    pthread_attr_destroy(&usual);
  }

 private:
  static constexpr size_t stackBytes = size_t{512} << 20;
  pthread_attr_t usual;
  rlimit before;
};

std::vector<std::byte> compressible(size_t size, unsigned seed) {
  auto bytes = randomBytes(size, seed);
  for (auto& byte : bytes) byte &= std::byte{3};
  return bytes;
}

}  // namespace

TEST_CASE("things of all sizes come back, whatever they hold") {
  ScratchDirectory scratch;
  Items items{{},
              randomBytes(1, 1),
              compressible(chunkBytes - 1, 2),
              randomBytes(chunkBytes, 3),
              {},
              compressible(3 * chunkBytes + 17, 4),
              std::vector<std::byte>(5 * chunkBytes + 3),
              randomBytes(4097, 5)};
  for (int i = 0; i < 40; i++) items.push_back(compressible(700'000, 10 + i));
  FileSum sum = write(scratch.path + "/s", items);
  CHECK(read(scratch.path + "/s", sum, items) == items);
}

TEST_CASE("nothing comes back as nothing") {
  ScratchDirectory scratch;
  FileSum sum = write(scratch.path + "/s", {});
  CHECK(sum.bytes == 0);
  CHECK(read(scratch.path + "/s", sum, {}).empty());
}

TEST_CASE("zeros take no room, and bytes without order take little more than themselves") {
  ScratchDirectory scratch;
  CHECK(write(scratch.path + "/zeros", {std::vector<std::byte>(16 * chunkBytes)}).bytes == 16 * 32);
  CHECK(write(scratch.path + "/random", {randomBytes(2 * chunkBytes, 1)}).bytes == 2 * (chunkBytes + 32));
}

TEST_CASE("a file with any byte changed is refused by name, and by chunk where one chunk is wrong") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/s";
  Items items{compressible(3000, 1), randomBytes(500, 2), std::vector<std::byte>(100)};
  FileSum sum = write(path, items);
  std::string good = readFile(path + "/bytes");
  REQUIRE(good.size() == sum.bytes);
  for (size_t at = 0; at < good.size(); at += 3) {
    CAPTURE(at);
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ (1 << at % 8));
    writeFile(path + "/bytes", bad);
    CHECK_THROWS_WITH_AS(read(path, sum, items), doctest::Contains("file bytes: c"),
                         kj::Exception);  // chunk or checksum
  }
  std::string bad = good;
  bad[good.size() - 32 - 250] ^= 1;  // in the second chunk's payload
  writeFile(path + "/bytes", bad);
  CHECK_THROWS_WITH_AS(read(path, sum, items), doctest::Contains("file bytes: chunk 1: its checksum differs"),
                       kj::Exception);
}

TEST_CASE("a file cut off anywhere is refused, also where the manifest was made to agree") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/s";
  Items items{compressible(3000, 1), randomBytes(500, 2)};
  FileSum sum = write(path, items);
  std::string good = readFile(path + "/bytes");
  for (size_t size = 0; size < good.size(); size += 7) {
    std::string cut = good.substr(0, size);
    writeFile(path + "/bytes", cut);
    CHECK_THROWS_WITH_AS(read(path, sum, items), doctest::Contains("file bytes: length"), kj::Exception);
    FileSum agreed{cut.size(), checksumOf(bytesOf(cut))};
    CHECK_THROWS_WITH_AS(read(path, agreed, items), doctest::Contains("file bytes: length"), kj::Exception);
  }
}

TEST_CASE("a file of other chunks than planned is refused") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/s";
  FileSum sum = write(path, {randomBytes(500, 2)});
  CHECK_THROWS_WITH_AS(read(path, sum, {randomBytes(501, 2)}), doctest::Contains("file bytes: chunk 0"), kj::Exception);
  CHECK_THROWS_WITH_AS(read(path, sum, {}), doctest::Contains("file bytes: length: 532 bytes lie behind"),
                       kj::Exception);
}

TEST_CASE("a stage that fails ends the others, and its error comes out") {
  ScratchDirectory scratch;
  for (int stage = 0; stage < 3; stage++) {
    for (auto here : {Pipeline::Here::produce, Pipeline::Here::consume}) {
      auto failIn = [&](int which, const Chunk& chunk) {
        KJ_REQUIRE(stage != which || chunk.index != 20, "stage gives up");
      };
      Pipeline::Stages stages{[&](Chunk& chunk) {
                                failIn(0, chunk);
                                return chunk.index < 1000;
                              },
                              [&](Chunk& chunk) { failIn(1, chunk); }, [&](Chunk& chunk) { failIn(2, chunk); }};
      CHECK_THROWS_WITH_AS(pipeline().run(stages, here), doctest::Contains("stage gives up"), kj::Exception);
    }
  }
  // And the buffers serve again.
  uint64_t seen = 0;
  pipeline().run({[&](Chunk& chunk) { return chunk.index < 100; }, [](Chunk&) {},
                  [&](Chunk& chunk) { CHECK(chunk.index == seen++); }},
                 Pipeline::Here::produce);
  CHECK(seen == 100);
}

TEST_CASE("where there is room for one thread only, writing chunks is an error and not the end of the process") {
  ScratchDirectory scratch;
  SnapshotWriter directory(scratch.path + "/snapshot");
  FileWriter file = directory.create(bytesFile);
  Items items = {randomBytes(1000, 1)};
  pipeline();
  std::string text;
  {
    RoomForOneThread room;
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] {
                   writeChunks(pipeline(), file, planOf(items), [&](const Piece& piece, std::byte* out) {
                     std::memcpy(out, items[piece.item].data() + piece.offset, piece.bytes);
                   });
                 }))
      text = exception->getDescription().cStr();
  }
  CHECK(text.find("Resource temporarily unavailable") != std::string::npos);
}
