// The list as the session uses it: real frames in, records out.
#include "vgpu/objects/object-list.h"

#include <doctest/doctest.h>

#include "frames.h"

using namespace vgpu;
using namespace vgpu::test;

namespace {

// The records that a reader sees after `act` was applied to an empty list and committed.
template <typename Act>
std::vector<ObjectRecord> after(Act act) {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    act(*list);
    list->commit();
  }
  return readAll(scratch.path);
}

}  // namespace

TEST_CASE("an allocation is a record with its range and its frame") {
  auto records = after([](ObjectList& list) { list.apply(memAlloc(64, address, 4096)); });
  REQUIRE(records.size() == 1);
  CHECK(records[0].id == ObjectId{api::Kind::MEMORY, address});
  CHECK(records[0].address == address);
  CHECK(records[0].bytes == 4096);
  CHECK_FALSE(records[0].destroyed());
  REQUIRE(records[0].recipe.size() == 1);
  auto made = memAlloc(64, address, 4096);
  CHECK(records[0].recipe[0].position == 64);
  CHECK(records[0].recipe[0].method == api::Method::memAlloc);
  CHECK(records[0].recipe[0].words.asBytes() == made.words.asBytes());
}

TEST_CASE("a freed allocation leaves nothing, and its address can be allocated again") {
  CHECK(after([](ObjectList& list) {
          list.apply(memAlloc(64, address));
          list.commit();
          list.apply(memFree(128, address));
        }).empty());
  auto records = after([](ObjectList& list) {
    list.apply(memAlloc(64, address));
    list.apply(memFree(128, address));
    list.apply(memAlloc(192, address, 512));
  });
  REQUIRE(records.size() == 1);
  CHECK(records[0].key() == 192);
  CHECK(records[0].bytes == 512);
}

TEST_CASE("a module's unloading ends its functions and no others") {
  auto records = after([](ObjectList& list) {
    list.apply(moduleLoad(64, 1));
    list.apply(moduleLoad(128, 2));
    list.apply(moduleFunction(192, 11, 1));
    list.apply(moduleFunction(256, 12, 2));
    list.apply(funcSetAttribute(320, 11, 8, 1000));
    list.commit();
    list.apply(moduleUnload(384, 1));
  });
  REQUIRE(records.size() == 2);
  CHECK(records[0].id == ObjectId{api::Kind::MODULE, 2});
  CHECK(records[1].id == ObjectId{api::Kind::FUNCTION, 12});
  REQUIRE(records[1].needs.size() == 1);
  CHECK(records[1].parented);
  CHECK(records[1].needs[0] == Need{{api::Kind::MODULE, 2}, 128});
}

TEST_CASE("of several settings of one attribute, the last is kept") {
  auto records = after([](ObjectList& list) {
    list.apply(moduleLoad(64, 1));
    list.apply(moduleFunction(128, 11, 1));
    for (int i = 0; i < 100; i++) list.apply(funcSetAttribute(192 + 128 * i, 11, 8, i));
    list.apply(funcSetAttribute(64000, 11, 9, 7));
  });
  REQUIRE(records.size() == 2);
  auto& recipe = records[1].recipe;
  REQUIRE(recipe.size() == 3);
  CHECK(recipe[0].method == api::Method::moduleFunction);
  CHECK(recipe[1].position == 192 + 128 * 99);
  CHECK(recipe[2].position == 64000);
}

TEST_CASE("a texture reference needs the array that it is bound to, and none that it was bound to before") {
  auto makeArray = [](uint64_t position, uint64_t array) {
    return makeFrame<api::Cuda::ArrayCreateParams>(position, api::Method::arrayCreate, 0, [&](auto& p) { p.setArray(array); });
  };
  auto destroyArray = [](uint64_t position, uint64_t array) {
    return makeFrame<api::Cuda::ArrayDestroyParams>(position, api::Method::arrayDestroy, 0, [&](auto& p) { p.setArray(array); });
  };
  auto bind = [](uint64_t position, uint64_t array) {
    return makeFrame<api::Cuda::TexRefSetArrayParams>(position, api::Method::texRefSetArray, 0, [&](auto& p) {
      p.setHTexRef(21);
      p.setHArray(array);
    });
  };
  auto records = after([&](ObjectList& list) {
    list.apply(makeFrame<api::Cuda::TexRefCreateParams>(64, api::Method::texRefCreate, 0, [](auto& p) { p.setPTexRef(21); }));
    for (uint64_t i = 0; i < 100; ++i) {
      list.apply(makeArray(1000 + i * 300, 100 + i));
      list.apply(bind(1100 + i * 300, 100 + i));
      if (i > 0) list.apply(destroyArray(1200 + i * 300, 99 + i));  // the array that it was bound to before
      if (i % 10 == 0) list.commit();
    }
  });
  REQUIRE(records.size() == 2);
  CHECK(records[0].id.kind == api::Kind::TEXTURE_REFERENCE);
  REQUIRE(records[0].needs.size() == 1);
  CHECK(records[0].needs[0].handle == 199);
  CHECK(records[1].id == ObjectId{api::Kind::ARRAY, 199});
}

TEST_CASE("a limit is recorded with its device's context, which has a record from then on") {
  auto records = after([](ObjectList& list) {
    list.apply(ctxSetLimit(64, 0, 0, 1024));
    list.apply(memAlloc(128, address));
    list.apply(ctxSetLimit(192, 3, 0, 4096));
    list.commit();
    list.apply(ctxSetLimit(256, 0, 0, 2048));  // supersedes the context's first frame: the record's key changes
    list.apply(ctxSetLimit(320, 0, 1, 5));
  });
  REQUIRE(records.size() == 3);
  CHECK(records[0].id.kind == api::Kind::MEMORY);
  CHECK(records[1].id == ObjectId{api::Kind::CONTEXT, 3});
  CHECK(records[1].device == 3);
  CHECK(records[2].id == ObjectId{api::Kind::CONTEXT, 0});
  REQUIRE(records[2].recipe.size() == 2);
  CHECK(records[2].key() == 256);
}

TEST_CASE("attributes of the default stream do not change when another stream's are set") {
  auto set = [](uint64_t position, kj::byte value) {
    return makeFrame<api::Cuda::StreamSetAttributeParams>(position, api::Method::streamSetAttribute, 0, [&](auto& p) {
      p.setAttr(1);
      p.initParam(1)[0] = value;
    });
  };
  auto records = after([&](ObjectList& list) {
    list.apply(makeFrame<api::Cuda::StreamCreateParams>(64, api::Method::streamCreate, 0, [](auto& p) { p.setPhStream(21); }));
    list.apply(set(128, 1));
    list.apply(set(256, 2));
    list.apply(makeFrame<api::Cuda::StreamCopyAttributesParams>(384, api::Method::streamCopyAttributes, 0,
                                                                [](auto& p) { p.setDstStream(21); }));
    list.apply(set(512, 3));
  });
  REQUIRE(records.size() == 2);
  const ObjectRecord& context = records[0].id.kind == api::Kind::CONTEXT ? records[0] : records[1];
  CHECK(context.id == ObjectId{api::Kind::CONTEXT, 0});
  REQUIRE(context.recipe.size() == 2);
  CHECK(context.recipe[0].position == 256);
  CHECK(context.recipe[1].position == 512);
}

TEST_CASE("frames that belong to no recipe and frames of unknown objects are ignored") {
  auto records = after([](ObjectList& list) {
    list.apply(memFree(64, address));
    list.apply(moduleUnload(128, 5));
    list.apply(funcSetAttribute(192, 11, 8, 1));
    list.apply(moduleFunction(256, 11, 5));
    list.apply(makeFrame<api::Cuda::StreamQueryParams>(320, api::Method::streamQuery, 0, [](auto) {}));
  });
  CHECK(records.empty());
}

TEST_CASE("an object that exists cannot be made again, and the list is unchanged") {
  auto records = after([](ObjectList& list) {
    list.apply(memAlloc(64, address, 256));
    CHECK_THROWS_WITH_AS(list.apply(memAlloc(128, address, 512)), doctest::Contains("creates an object that already exists"),
                         kj::Exception);
    list.apply(memAlloc(192, address + 4096));
  });
  REQUIRE(records.size() == 2);
  CHECK(records[0].bytes == 256);
}

TEST_CASE("a frame that is not a valid message is refused") {
  ScratchDirectory scratch;
  auto list = ObjectList::open(scratch.path);
  RecordedFrame frame = memAlloc(64, address);
  memset(frame.words.asBytes().begin(), 0xff, frame.words.asBytes().size());
  CHECK_THROWS_AS(list->apply(std::move(frame)), kj::Exception);
  CHECK(list->size() == 0);
}

TEST_CASE("a destroyed object stays until the worker has executed its destruction, also after the list is reopened") {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    list->apply(memAlloc(64, address, 256));
    list->apply(memFree(128, address));
    list->apply(memAlloc(192, address, 512));
    list->commit(128);  // the worker has executed the frames before position 128
    CHECK(list->size() == 2);
  }
  auto records = readAll(scratch.path);
  REQUIRE(records.size() == 2);
  CHECK(records[0].destroyedAt == 128);
  CHECK(records[0].recipe.size() == 2);
  auto list = ObjectList::open(scratch.path);
  list->commit(129);
  CHECK(list->size() == 1);
}

TEST_CASE("the list at a position has the objects that lived there and no others") {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    list->apply(moduleLoad(64, 1));
    list->apply(moduleFunction(128, 11, 1));
    list->apply(memAlloc(192, address, 256));
    list->apply(memFree(256, address));
    list->apply(memAlloc(320, address, 512));
    list->apply(moduleUnload(384, 1));
    list->commit(150);
  }
  auto before = recordsAt(readAll(scratch.path), 256);
  REQUIRE(before.size() == 3);
  CHECK(before[0].id.kind == api::Kind::MODULE);
  CHECK(before[0].recipe.size() == 1);
  CHECK_FALSE(before[1].destroyed());
  CHECK(before[2].bytes == 256);
  auto later = recordsAt(readAll(scratch.path), 384);
  REQUIRE(later.size() == 3);
  CHECK(later[2].bytes == 512);
  auto end = recordsAt(readAll(scratch.path), 448);
  REQUIRE(end.size() == 1);
  CHECK(end[0].bytes == 512);
}

TEST_CASE("a list that is reopened continues where it was") {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    list->apply(moduleLoad(64, 1));
    list->apply(moduleFunction(128, 11, 1));
    list->apply(ctxSetLimit(192, 0, 0, 1));
    list->commit();
  }
  {
    auto list = ObjectList::open(scratch.path);
    CHECK(list->size() == 3);
    list->apply(ctxSetLimit(256, 0, 0, 2));
    list->apply(moduleUnload(320, 1));
    list->commit();
  }
  auto records = readAll(scratch.path);
  REQUIRE(records.size() == 1);
  CHECK(records[0].key() == 256);
}

TEST_CASE("a list's commit number changes only if something has changed") {
  ScratchDirectory scratch;
  auto numberAfter = [&](auto act) {
    {
      auto list = ObjectList::open(scratch.path);
      act(*list);
      list->commit();
    }
    CHECK(readObjects(scratch.path, [](ObjectRecord&&) {}) == commitNumber(scratch.path));
    return commitNumber(scratch.path);
  };
  const uint64_t first = numberAfter([](ObjectList& list) { list.apply(memAlloc(64, address)); });
  CHECK(numberAfter([](ObjectList&) {}) == first);
  const uint64_t second = numberAfter([](ObjectList& list) { list.apply(memFree(128, address)); });
  CHECK(second > first);
  CHECK(numberAfter([](ObjectList& list) { list.apply(memAlloc(192, address)); }) > second);
}

TEST_CASE("changes that were not committed are lost") {
  ScratchDirectory scratch;
  {
    auto list = ObjectList::open(scratch.path);
    list->apply(memAlloc(64, address));
    list->commit();
    list->apply(memAlloc(128, address + 4096));
    list->apply(memFree(192, address));
  }
  auto records = readAll(scratch.path);
  REQUIRE(records.size() == 1);
  CHECK(records[0].id.handle == address);
}

TEST_CASE("a list that has left its file writes all of it into another one, and continues there") {
  ScratchDirectory first, second, third;
  auto list = ObjectList::open(first.path);
  list->apply(moduleLoad(64, 1));
  list->apply(memAlloc(128, address));
  list->apply(memAlloc(192, address + 4096));
  list->commit();
  list->apply(memFree(256, address + 4096));
  list->commit();
  list->leave();
  auto before = readAll(first.path);  // nobody has it open any more
  list->enter(second.path);
  list->leave();
  auto after = readAll(second.path);
  REQUIRE(after.size() == before.size());
  for (size_t i = 0; i < before.size(); ++i) {
    CHECK(after[i].id == before[i].id);
    CHECK(after[i].key() == before[i].key());
    CHECK(after[i].destroyedAt == before[i].destroyedAt);
  }
  list->enter(third.path);
  list->apply(memFree(320, address));
  list->commit();
  list.reset();
  CHECK(readAll(third.path).size() == before.size() - 1);
  CHECK(readAll(first.path).size() == before.size());
}

TEST_CASE("a list whose file cannot be created can be given another path") {
  ScratchDirectory first, second;
  auto list = ObjectList::open(first.path);
  list->apply(memAlloc(64, address));
  list->commit();
  list->leave();
  CHECK_THROWS(list->enter(first.path + "/nowhere/at/all"));
  list->enter(second.path);
  list.reset();
  CHECK(readAll(second.path).size() == 1);
}
