#include "migrate/objects-ahead.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "../objects/frames.h"
#include "vgpu/api/library.h"
#include "vgpu/snapshot/methods.h"

using namespace vgpu;
using namespace vgpu::migrate;
using namespace vgpu::test;

namespace {

RecordedFrame libraryCreate(uint64_t position, uint64_t object, const std::string& symbol) {
  auto entry = std::ranges::find_if(api::libraryEntries, [&](auto& each) { return symbol == each.symbol; });
  return makeFrame<api::Cuda::LibraryCreateParams>(position, api::Method::libraryCreate, 0, [&](auto& p) {
    p.setObject(object);
    p.setEntry(entry->signature);
    p.setSymbol(entry->symbol);
  });
}

// Two modules with a function each; a setting of the first function; a library's handle and descriptor; and memory.
std::vector<ObjectRecord> sample() {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    list->apply(moduleLoad(64, 1, 71));
    list->apply(moduleFunction(128, 11, 1));
    list->apply(funcSetAttribute(192, 11, 8, 4096));
    list->apply(moduleLoad(256, 2, 72));
    list->apply(moduleFunction(320, 12, 2));
    list->apply(memAlloc(384, address, 512));
    list->apply(libraryCreate(448, 21, "cublasCreate_v2"));
    list->apply(libraryCreate(512, 22, "cublasLtMatmulDescCreate"));
    list->commit();
  }
  return readAll(scratch.path);
}

std::vector<uint64_t> handlesOf(const std::vector<ObjectRecord>& records) {
  std::vector<uint64_t> handles;
  for (auto& record : records) handles.push_back(record.id.handle);
  return handles;
}

ObjectsAhead sampleAhead() {
  ObjectsAhead objects;
  objects.key = DigestKey::random();
  objects.records = worthMakingAhead(sample(), [](uint64_t) { return true; });
  objects.tables.state["modules"].push_back({uint64_t{0}, uint64_t{1}, uint64_t{71}, uint64_t{1}});
  snapshot::addMethods(objects.tables.methods, objects.records);
  return objects;
}

}  // namespace

TEST_CASE("a list is complete at a cut if it has all the cut's frames, and contains no destroyed objects") {
  auto records = sample();
  CHECK(areExecuted(records, 513));
  CHECK_FALSE(areExecuted(records, 512));
  CHECK_FALSE(areExecuted(records, 192));  // a change of an object, not an object
  records.front().destroyedAt = 1;
  CHECK_FALSE(areExecuted(records, 513));
}

TEST_CASE("modules, their functions and variables, and libraries' handles are made ahead, and nothing else") {
  CHECK(handlesOf(worthMakingAhead(sample(), [](uint64_t) { return true; })) == std::vector<uint64_t>{1, 11, 2, 12, 21});
}

TEST_CASE("a module whose image has not been sent waits, and so do its functions") {
  CHECK(handlesOf(worthMakingAhead(sample(), [](uint64_t image) { return image == 72; })) == std::vector<uint64_t>{2, 12, 21});
}

TEST_CASE("a message of objects is read back unchanged") {
  auto sent = sampleAhead();
  auto read = decodeObjects(encodeObjects(sent));
  CHECK(read.key == sent.key);
  CHECK(read.tables.state == sent.tables.state);
  CHECK(read.tables.methods == sent.tables.methods);
  REQUIRE(handlesOf(read.records) == handlesOf(sent.records));
  CHECK(read.records[1].recipe.size() == 2);
}

TEST_CASE("a truncated message of objects is refused, or has fewer objects") {
  auto good = encodeObjects(sampleAhead());
  for (size_t size = 0; size < good.size(); ++size) {
    size_t records = 0;
    kj::runCatchingExceptions([&] { records = decodeObjects(std::span(good).first(size)).records.size(); });
    INFO(size);
    CHECK(records < 5);
  }
}

TEST_CASE("objects of a build whose calls have other fields are refused with the call's name") {
  auto objects = sampleAhead();
  objects.tables.methods[static_cast<uint16_t>(api::Method::moduleLoad)] = "moduleLoad(module u32)";
  CHECK_THROWS_WITH_AS(decodeObjects(encodeObjects(objects)), doctest::Contains("moduleLoad(module u32)"), kj::Exception);
}
