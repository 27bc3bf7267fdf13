#include "checkpoint/resident-chunks.h"

#include <doctest/doctest.h>

using namespace vgpu;
using namespace vgpu::checkpoint;

namespace {

DevicePiece piece(uint64_t address, size_t bytes, uint64_t digest, unsigned device = 0) {
  return {device, address, bytes, Digest{digest, digest}};
}

void add(ResidentChunks& chunks, const DevicePiece& added) {
  chunks.add(added.device, added.address, added.bytes, *added.digest);
}

}  // namespace

TEST_CASE("a chunk is found by its digest, address and size, and by no others") {
  ResidentChunks chunks;
  add(chunks, piece(4096, 100, 7));
  CHECK(chunks.has(piece(4096, 100, 7)));
  CHECK_FALSE(chunks.has(piece(4096, 100, 8)));
  CHECK_FALSE(chunks.has(piece(4096, 99, 7)));
  CHECK_FALSE(chunks.has(piece(4097, 100, 7)));
  CHECK_FALSE(chunks.has(piece(4096, 100, 7, 1)));
  CHECK_FALSE(chunks.has({0, 4096, 100, std::nullopt}));
}

TEST_CASE("a chunk that is added replaces all that it overlaps") {
  ResidentChunks chunks;
  add(chunks, piece(0, 100, 1));
  add(chunks, piece(100, 100, 2));
  add(chunks, piece(200, 100, 3));
  add(chunks, piece(300, 100, 4));
  add(chunks, piece(150, 100, 5));
  CHECK(chunks.has(piece(0, 100, 1)));
  CHECK_FALSE(chunks.has(piece(100, 100, 2)));
  CHECK_FALSE(chunks.has(piece(200, 100, 3)));
  CHECK(chunks.has(piece(300, 100, 4)));
  CHECK(chunks.has(piece(150, 100, 5)));
  add(chunks, piece(150, 100, 6));
  CHECK_FALSE(chunks.has(piece(150, 100, 5)));
  CHECK(chunks.has(piece(150, 100, 6)));
}

TEST_CASE("chunks that overlap a removed range are gone, on that GPU only") {
  ResidentChunks chunks;
  add(chunks, piece(0, 100, 1));
  add(chunks, piece(100, 100, 2));
  add(chunks, piece(200, 100, 3));
  add(chunks, piece(150, 10, 4, 1));
  chunks.remove(0, 150, 50);
  CHECK(chunks.has(piece(0, 100, 1)));
  CHECK_FALSE(chunks.has(piece(100, 100, 2)));
  CHECK(chunks.has(piece(200, 100, 3)));
  CHECK(chunks.has(piece(150, 10, 4, 1)));
}
