#include "checkpoint/chunk-file.h"

#include <doctest/doctest.h>
#include <kj/debug.h>
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <numeric>

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

constexpr unsigned writers = 3;

// Shared by all cases: making it takes longer than reading most files here.
StagingRing& ring() {
  static StagingRing shared(nullptr, StagingRing::slotsFor(writers));
  return shared;
}

const DigestKey key = *DigestKey::parse("000102030405060708090a0b0c0d0e0f");

struct Written {
  std::vector<ChunkPlace> places;
  std::vector<uint64_t> packs;
  uint64_t bytes() const { return std::accumulate(packs.begin(), packs.end(), uint64_t{0}); }
};

// Writes `items` into the packs of a directory without a manifest; `source` sets the other fields of their ChunkSource.
Written write(const std::string& path, const Items& items, ChunkSource source = {}) {
  SnapshotWriter directory(path);
  ChunkSink sink(directory.openPacks(), key);
  source.fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
    std::memcpy(out, items[piece.item].data() + piece.offset, piece.bytes);
    return std::nullopt;
  };
  writeChunks(nullptr, sink, planOf(items), source);
  finishChunks(sink);
  directory.publish("");
  return {sink.places(), sink.packs()};
}

Items read(const std::string& path, const Written& written, const Items& like) {
  SavedChunks saved(SnapshotReader(path), written.places, written.packs, key);
  ChunkReading reading(ring(), saved, 0, planOf(like));
  Items items;
  for (auto& item : like) items.emplace_back(item.size(), std::byte{0x55});
  reading.run(nullptr, [&](const Piece& piece, const std::byte* bytes) -> OnItsWay {
    std::byte* out = items[piece.item].data() + piece.offset;
    if (bytes == nullptr) {
      std::memset(out, 0, piece.bytes);
    } else {
      std::memcpy(out, bytes, piece.bytes);
    }
    return std::nullopt;
  });
  return items;
}

// Path of the pack that holds a chunk.
std::string packOf(const std::string& path, const ChunkPlace& place) { return path + "/" + packFile(place.pack); }

// Limits the address space and enlarges thread stacks, so that a second thread cannot be created.
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

TEST_CASE("items of all sizes come back, whatever they hold") {
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
  Written written = write(scratch.path + "/s", items);
  CHECK(read(scratch.path + "/s", written, items) == items);
}

TEST_CASE("chunks that a worker misses come back from files if there is no memory to hold them") {
  ScratchDirectory scratch;
  const Items items{randomBytes(2 * chunkBytes + 5, 1), std::vector<std::byte>(chunkBytes), compressible(700'000, 2)};
  ChunkSource source;
  source.digest = [&](const Piece& piece) {
    return Digester(key)(std::span(items[piece.item]).subspan(piece.offset, piece.bytes));
  };
  source.residence = [](size_t, const Piece&, const std::optional<Digest>&) { return Residence::missing; };
  source.hold = [](const NewPiece&) { return nullptr; };
  Written written = write(scratch.path + "/s", items, source);
  CHECK(read(scratch.path + "/s", written, items) == items);
}

TEST_CASE("an empty item comes back empty") {
  ScratchDirectory scratch;
  Written written = write(scratch.path + "/s", {});
  CHECK(written.bytes() == 0);
  CHECK(read(scratch.path + "/s", written, {}).empty());
}

TEST_CASE("zeros and known chunks take no room, repetitive bytes little, and incompressible bytes no more than their size") {
  ScratchDirectory scratch;
  CHECK(write(scratch.path + "/zeros", {std::vector<std::byte>(16 * chunkBytes)}).bytes() == 0);
  CHECK(write(scratch.path + "/same", {std::vector<std::byte>(chunkBytes, std::byte{7})}).bytes() < 4096);
  auto random = randomBytes(2 * chunkBytes, 1);
  CHECK(write(scratch.path + "/random", {random}).bytes() == random.size());
  Items twice{random, random};
  Written written = write(scratch.path + "/twice", twice);
  CHECK(written.bytes() == random.size());
  CHECK(read(scratch.path + "/twice", written, twice) == twice);
}

TEST_CASE("any changed byte of a pack is found, and the chunk named") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/s";
  Items items{compressible(3000, 1), randomBytes(20'000, 2), std::vector<std::byte>(100)};
  Written written = write(path, items);
  for (size_t chunk = 0; chunk < 2; ++chunk) {
    std::string pack = packOf(path, written.places[chunk]), good = readFile(pack);
    for (size_t at = 0; at < written.places[chunk].bytes; at += 61) {
      CAPTURE(at);
      std::string bad = good;
      size_t where = written.places[chunk].offset + at;
      bad[where] = static_cast<char>(bad[where] ^ (1 << at % 8));
      writeFile(pack, bad);
      std::string expected = "file " + packFile(written.places[chunk].pack) + ": chunk " + std::to_string(chunk) + ": ";
      CHECK_THROWS_WITH_AS(read(path, written, items), doctest::Contains(expected.c_str()), kj::Exception);
    }
    writeFile(pack, good);
  }
  CHECK(read(path, written, items) == items);
}

TEST_CASE("a pack of another size is refused, and one that became shorter") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/s";
  Items items{randomBytes(20'000, 2)};
  Written written = write(path, items);
  std::string pack = packOf(path, written.places[0]), good = readFile(pack);
  for (std::string bad : {good.substr(1), good + "x", std::string()}) {
    writeFile(pack, bad);
    CHECK_THROWS_WITH_AS(read(path, written, items), doctest::Contains(": length"), kj::Exception);
  }
  writeFile(pack, good);
  SavedChunks saved(SnapshotReader(path), written.places, written.packs, key);
  writeFile(pack, good.substr(1));
  CHECK_THROWS_WITH_AS(ChunkReading(ring(), saved, 0, planOf(items)).run(nullptr, [](auto&, auto*) { return std::nullopt; }),
                       doctest::Contains(": length: it became shorter"), kj::Exception);
}

TEST_CASE("chunks that are swapped, have another size, or were digested with another key are refused") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/s";
  Items items{randomBytes(20'000, 2), randomBytes(20'000, 3)};
  Written written = write(path, items), swapped = written;
  std::swap(swapped.places[0].offset, swapped.places[1].offset);
  std::swap(swapped.places[0].pack, swapped.places[1].pack);
  CHECK_THROWS_WITH_AS(read(path, swapped, items), doctest::Contains("its digest does not match"), kj::Exception);
  CHECK_THROWS_WITH_AS(read(path, written, {randomBytes(20'001, 2), items[1]}), doctest::Contains("chunk 0: its size differs"),
                       kj::Exception);
  SavedChunks saved(SnapshotReader(path), written.places, written.packs, DigestKey{});
  CHECK_THROWS_WITH_AS(ChunkReading(ring(), saved, 0, planOf(items)).run(nullptr, [](auto&, auto*) { return std::nullopt; }),
                       doctest::Contains("its digest does not match"), kj::Exception);
}

TEST_CASE("a list of chunks is read back unchanged, and an invalid one is refused") {
  std::vector<uint64_t> packs{100, 4 << 20};
  std::vector<ChunkPlace> places{{{1, 2}, 0, 0, 0, Form::zero}, {{3, 4}, 60, 40, 0, Form::plain}, {{5, 6}, 1 << 20, 1 << 20, 1, Form::zstd}};
  auto good = encodeChunks(places);
  CHECK(decodeChunks(good, packs) == places);
  CHECK(decodeChunks(encodeChunks({}), packs).empty());
  auto refused = [&](auto change) {
    auto bad = places;
    change(bad);
    CHECK_THROWS_WITH_AS(decodeChunks(encodeChunks(bad), packs), doctest::Contains("its position is invalid"), kj::Exception);
  };
  refused([](auto& bad) { bad[0].bytes = 1; });
  refused([](auto& bad) { bad[1].offset = 61; });
  refused([](auto& bad) { bad[1].offset = ~uint64_t{0}; });
  refused([](auto& bad) { bad[1].bytes = 0; });
  refused([](auto& bad) { bad[2].pack = 2; });
  refused([](auto& bad) { bad[2].form = static_cast<Form>(3); });
  for (size_t size = 0; size < good.size(); ++size)
    CHECK_THROWS_AS(decodeChunks(std::span(good).first(size), packs), kj::Exception);
}

TEST_CASE("a second save to a store writes only new chunks, and both come back") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  ChunkStore(path).key();
  SnapshotReader directory(scratch.path);  // for messages
  Items first{randomBytes(3 * chunkBytes + 100, 1), std::vector<std::byte>(chunkBytes)}, second = first;
  second[0][chunkBytes] ^= std::byte{1};
  auto save = [&](const Items& items, uint64_t& written) {
    ChunkStore store(path);
    ChunkSink sink(store);
    auto fill = [&](const Piece& piece, std::byte* out) -> OnItsWay {
      std::memcpy(out, items[piece.item].data() + piece.offset, piece.bytes);
      return std::nullopt;
    };
    writeChunks(nullptr, sink, planOf(items), {fill});
    finishChunks(sink);
    written = sink.writtenBytes();
    CHECK(sink.packs().empty());
    sink.commit();
    return sink.places();
  };
  auto matches = [&](const std::vector<ChunkPlace>& places, const Items& items) {
    ChunkStore store(path);
    SavedChunks saved(directory, places, store, {planOf(items)});
    bool same = true;
    ChunkReading(ring(), saved, 0, planOf(items)).run(nullptr, [&](const Piece& piece, const std::byte* bytes) -> OnItsWay {
      std::span<const std::byte> wanted(items[piece.item].data() + piece.offset, piece.bytes);
      same = same && (bytes == nullptr ? isZero(wanted) : memcmp(bytes, wanted.data(), wanted.size()) == 0);
      return std::nullopt;
    });
    return same;
  };
  uint64_t all = 0, changed = 0, none = 1;
  auto firstPlaces = save(first, all), secondPlaces = save(second, changed), again = save(second, none);
  CHECK(all == 3 * chunkBytes + 100);
  CHECK(changed == chunkBytes);
  CHECK(none == 0);
  CHECK(again == secondPlaces);
  CHECK(matches(firstPlaces, first));
  CHECK(matches(secondPlaces, second));
  CHECK_FALSE(matches(firstPlaces, second));
}

TEST_CASE("adjacent zeros in a flat item are one piece, up to the size that is copied at once") {
  ScratchDirectory scratch;
  const size_t most = mostCopiedAtOnce / chunkBytes;
  using Bytes = std::vector<std::byte>;
  Items items{Bytes((most + 2) * chunkBytes + 100), Bytes(2 * chunkBytes), Bytes(2 * chunkBytes)};
  items[0].front() = std::byte{1};
  Written written = write(scratch.path + "/s", items);
  SavedChunks saved(SnapshotReader(scratch.path + "/s"), written.places, written.packs, key);
  std::vector<std::pair<size_t, size_t>> found, wanted{{0, chunkBytes},     {0, most * chunkBytes}, {0, chunkBytes + 100},
                                                       {1, 2 * chunkBytes}, {2, chunkBytes},        {2, chunkBytes}};
  auto take = [&](const Piece& piece, const std::byte*) -> OnItsWay {
    found.emplace_back(piece.item, piece.bytes);
    return std::nullopt;
  };
  ChunkReading(ring(), saved, 0, planOf(items)).run(nullptr, take, [](size_t item) { return item != 2; });
  CHECK(found == wanted);
}

TEST_CASE("an abandoned save to a store leaves no pack") {
  ScratchDirectory scratch;
  std::string path = scratch.path + "/store";
  ChunkStore store(path);
  {
    ChunkSink sink(store);
    auto fill = [](const Piece& piece, std::byte* out) -> OnItsWay {
      auto bytes = randomBytes(piece.bytes, 1);
      std::memcpy(out, bytes.data(), piece.bytes);
      return std::nullopt;
    };
    writeChunks(nullptr, sink, ChunkPlan({chunkBytes}), {fill});
    CHECK(namesIn(path + "/packs").size() == 1);
  }
  CHECK(namesIn(path + "/packs").empty());
}

TEST_CASE("a thread that fails ends the others, and its error is thrown") {
  ScratchDirectory scratch;
  Items items{randomBytes(100 * 4096, 1)};
  std::vector<uint64_t> sizes(200, 4096);
  SnapshotWriter directory(scratch.path + "/s");
  {
    ChunkSink sink(directory.openPacks(), key);
    size_t filled = 0;
    auto fill = [&](const Piece&, std::byte*) -> OnItsWay {
      KJ_REQUIRE(++filled < 100, "the source gives up");
      return std::nullopt;
    };
    CHECK_THROWS_WITH_AS(writeChunks(nullptr, sink, ChunkPlan(sizes), {fill}), doctest::Contains("gives up"), kj::Exception);
  }
  Written written = write(scratch.path + "/t", items);
  SavedChunks saved(SnapshotReader(scratch.path + "/t"), written.places, written.packs, key);
  auto take = [&](const Piece&, const std::byte*) -> OnItsWay { KJ_FAIL_REQUIRE("the target gives up"); };
  CHECK_THROWS_WITH_AS(ChunkReading(ring(), saved, 0, planOf(items)).run(nullptr, take), doctest::Contains("gives up"), kj::Exception);
  { ChunkReading abandoned(ring(), saved, 0, planOf(items)); }
  CHECK(read(scratch.path + "/t", written, items) == items);  // the ring is usable again
}

TEST_CASE("a full disk is an error of the writing thread, and is thrown") {
  SmallDisk disk("size=1m");
  if (!disk.mounted) return;
  CHECK_THROWS_WITH_AS(write(disk.scratch.path + "/s", {randomBytes(4 * chunkBytes, 1)}), doctest::Contains("No space left on device"),
                       kj::Exception);
  CHECK(namesIn(disk.scratch.path).empty());
}

TEST_CASE("if only one thread can be created, writing chunks is an error and does not end the process") {
  ScratchDirectory scratch;
  SnapshotWriter directory(scratch.path + "/snapshot");
  ChunkSink sink(directory.openPacks(), key);
  ring();
  std::string text;
  {
    RoomForOneThread room;
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] {
                   writeChunks(nullptr, sink, ChunkPlan({1000}), {[](auto&, auto*) { return std::nullopt; }});
                   finishChunks(sink);
                 }))
      text = exception->getDescription().cStr();
  }
  CHECK(text.find("Resource temporarily unavailable") != std::string::npos);
}
