// How much of its worker's memory a session's images may use.
#include "stub/worker/blobs.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>
#include <vector>

using namespace vgpu;
using namespace vgpu::stub;

namespace {

constexpr CUresult invalid = CUDA_ERROR_INVALID_VALUE, full = CUDA_ERROR_OUT_OF_MEMORY;

uint64_t residentBytes() {
  uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

std::span<const std::byte> bytesOf(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("announced images and zeros use no memory, and bytes that arrive use theirs") {
  BlobUsage usage;
  Blobs blobs(usage);
  uint64_t before = residentBytes();
  for (uint64_t number = 0; number < 4; ++number)
    REQUIRE(blobs.reserve(number, Blob::Origin::program, 4 * GiB) == CUDA_SUCCESS);
  blobs.find(0)->append(bytesOf("some"));
  blobs.find(0)->appendZeros(3 * GiB);
  blobs.find(0)->append(bytesOf("text"));
  CHECK(residentBytes() - before < 64 * MiB);
  CHECK_FALSE(blobs.find(0)->isWhole());
  CHECK(blobs.find(0)->arrivedBytes() == 3 * GiB + 8);
  CHECK(blobs.find(0)->bytes()[0] == std::byte{'s'});
  CHECK(blobs.find(0)->bytes()[5] == std::byte{0});
  CHECK(blobs.find(0)->bytes()[3 * GiB + 4] == std::byte{'t'});
}

TEST_CASE("an image is complete when all of it has arrived, and a zero byte follows it") {
  BlobUsage usage;
  Blobs blobs(usage);
  for (size_t bytes : {1, 4095, 4096, 4097}) {
    CAPTURE(bytes);
    std::vector<std::byte> piece(bytes, std::byte{7});
    REQUIRE(blobs.reserve(bytes, Blob::Origin::program, bytes) == CUDA_SUCCESS);
    Blob& blob = *blobs.find(bytes);
    CHECK_FALSE(blob.isWhole());
    blob.append(piece);
    CHECK(blob.isWhole());
    CHECK(blob.bytes().back() == std::byte{7});
    CHECK(blob.bytes().data()[bytes] == std::byte{0});
  }
}

TEST_CASE("the announced sizes of images, each and in total, and their number are limited") {
  BlobUsage usage;
  Blobs blobs(usage, {.count = 3, .eachBytes = 1000, .allBytes = 1500});
  auto reserve = [&](uint64_t number, uint64_t bytes) { return blobs.reserve(number, Blob::Origin::program, bytes); };
  CHECK(reserve(1, 0) == invalid);
  CHECK(reserve(1, 1001) == full);
  CHECK(reserve(1, ~uint64_t{0}) == full);
  CHECK(reserve(1, 1000) == CUDA_SUCCESS);
  CHECK(reserve(1, 10) == invalid);
  CHECK(reserve(2, 501) == full);
  CHECK(reserve(2, 500) == CUDA_SUCCESS);
  CHECK(reserve(3, 1) == full);
  blobs.drop(1);
  blobs.drop(1);
  CHECK(blobs.find(1) == nullptr);
  CHECK(reserve(3, 1) == CUDA_SUCCESS);
  CHECK(reserve(4, 1) == CUDA_SUCCESS);
  CHECK(reserve(5, 1) == full);
  blobs.drop(99);
}
