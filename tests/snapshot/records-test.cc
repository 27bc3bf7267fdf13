#include "vgpu/snapshot/records.h"

#include <doctest/doctest.h>

#include "../files.h"

using namespace vgpu;
using namespace vgpu::snapshot;
using namespace vgpu::test;

namespace {

std::vector<ObjectRecord> sample() {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    list->apply(moduleLoad(64, 1));
    list->apply(moduleFunction(128, 11, 1));
    list->apply(memAlloc(192, 0x2000'0000'0000, 512));
    list->commit();
  }
  return readAll(scratch.path);
}

}  // namespace

TEST_CASE("records are read back unchanged") {
  auto records = decodeRecords(encodeRecords(sample()), 256);
  REQUIRE(records.size() == 3);
  CHECK(records[1].id == ObjectId{api::Kind::FUNCTION, 11});
  CHECK(records[1].parented);
  CHECK(records[2].bytes == 512);
  CHECK(records[2].recipe[0].words.asBytes() == memAlloc(192, 0x2000'0000'0000, 512).words.asBytes());
  CHECK(decodeRecords({}, 256).empty());
}

TEST_CASE("a record of another position is refused") {
  CHECK_THROWS_WITH_AS(decodeRecords(encodeRecords(sample()), 192), doctest::Contains("a frame is newer than the snapshot"),
                       kj::Exception);
}

TEST_CASE("inconsistent records are refused") {
  auto records = sample();
  records.erase(records.begin());  // the function's module
  CHECK_THROWS_AS(decodeRecords(encodeRecords(records), 256), kj::Exception);
  records = sample();
  auto twice = encodeRecords(records);
  auto once = twice;
  twice.insert(twice.end(), once.begin(), once.end());
  CHECK_THROWS_AS(decodeRecords(twice, 256), kj::Exception);
}

TEST_CASE("records truncated anywhere but between two are refused") {
  auto good = encodeRecords(sample());
  size_t whole = 0;
  for (size_t size = 0; size < good.size(); size++) {
    try {
      decodeRecords(std::span(good).first(size), 256);
      whole++;
    } catch (const kj::Exception&) {
    }
  }
  CHECK(whole == 3);  // zero, one and two of three records
}

TEST_CASE("records with any bit changed are refused, or are other records") {
  auto good = encodeRecords(sample());
  size_t refused = 0;
  for (size_t bit = 0; bit < good.size() * 8; bit++) {
    auto bad = good;
    bad[bit / 8] ^= static_cast<std::byte>(1 << bit % 8);
    try {
      for (auto& record : decodeRecords(bad, 256)) CHECK(record.recipe.front().position < 256);
    } catch (const kj::Exception&) {
      refused++;
    }
  }
  CHECK(refused > good.size());
}
