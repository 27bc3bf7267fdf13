// Objects that a worker makes before it restores a session, as in a migration.
#include <doctest/doctest.h>
#include <kj/debug.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/sent-ahead.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"
#include "stub/worker/kinds/kind.h"

using namespace vgpu;
using namespace vgpu::test;
using namespace vgpu::checkpoint;

namespace {

constexpr uint64_t image = 1, otherImage = 2, otherModule = made::module + 1;

// How often the worker's driver loaded the test program's module, and with what register limit. State of the worker's process.
int loads = 0, registers = 0;
decltype(stub::Driver::cuModuleLoadDataEx) loadAsEver;

void countLoads(stub::Driver& driver) {
  loadAsEver = std::exchange(driver.cuModuleLoadDataEx, [](CUmodule* module, const void* bytes, unsigned count, CUjit_option* options,
                                                           void** values) {
    auto text = [](const void* image) { return static_cast<const char*>(image); };
    const bool isMade = std::strncmp(text(bytes), text(madeImage().data()), madeImage().size()) == 0;  // some images are shorter
    loads += isMade;
    for (unsigned i = 0; isMade && i < count; ++i)
      if (options[i] == CU_JIT_MAX_REGISTERS) registers = static_cast<int>(reinterpret_cast<uintptr_t>(values[i]));
    return loadAsEver(module, bytes, count, options, values);
  });
}

ObjectRecord recordOf(api::Kind kind, uint64_t handle, RecordedFrame frame) {
  ObjectRecord record;
  record.id = {kind, handle};
  record.recipe.push_back(std::move(frame));
  return record;
}

// What the source of a migration would send: the session's modules and their images, and one module that has since ended.
struct Ahead {
  StateTables state;
  std::vector<ObjectRecord> records;
  DigestKey key;

  explicit Ahead(const std::string& snapshot) {
    auto manifest = snapshot::readManifest(snapshot::SnapshotReader(snapshot));
    key = manifest.digestKey;
    for (auto* kind : {&stub::moduleBlockKind, &stub::moduleGroupKind}) state[kind->name] = manifest.state.at(kind->name);
    checkpoint::readObjects(snapshot, [&](ObjectRecord&& record) {
      if (MadeAhead::isOf(record.id.kind)) records.push_back(std::move(record));
    });
  }

  void addOther(uint64_t group) {
    auto frame = moduleLoad(0, otherModule, otherImage);
    frame.number = 1000;
    records.push_back(recordOf(api::Kind::MODULE, otherModule, std::move(frame)));
    state[stub::moduleGroupKind.name].push_back({group, otherModule, otherImage, uint64_t{1}, uint64_t{0}});
  }
};

void keepImage(stub::SessionState& on, SentAhead& sent, uint64_t number, const DigestKey& key) {
  auto& blobs = on.of(0).blobs;
  KJ_REQUIRE(blobs.reserve(number, stub::Blob::Origin::snapshot, madeImage().size()) == CUDA_SUCCESS);
  blobs.find(number)->append(madeImage());
  sent.images[{number, 0}] = Digester(key)(madeImage());
}

// Loads a module with variables, with a JIT option.
void loadForRegisters(TestSession& session, stub::Worker& worker) {
  bringImage(session, image, madeImage());
  session.require(makeFrame<api::Cuda::ModuleLoadParams>(0, api::Method::moduleLoad, 0, [](auto p) {
    p.setModule(made::module);
    p.setBlob(image);
    const std::array<int32_t, 1> options{CU_JIT_MAX_REGISTERS};
    const std::array<uint32_t, 1> values{40};
    p.setOptions(kj::arrayPtr(options.data(), options.size()));
    p.setValues(kj::arrayPtr(values.data(), values.size()));
  }));
  worker.quiesce();
}

// Saves a session and restores it in a worker that has followed it before, as `change` says; `look` is called in between. The worker must
// load `expectedLoads` modules in all. Returns the error; empty if there was none.
std::string restoreAfter(TestSession& session, int expectedLoads, const std::function<void(Ahead&)>& change,
                         const std::function<void(stub::SessionState&)>& look) {
  const std::string snapshot = session.scratch.path + "/snapshot", list = session.scratch.path + "/list";
  std::string error = session.inWorker([&](stub::Worker& worker) {
    buildAndStop(session, worker);
    save(worker, snapshot, list, someIdentity(), nullptr);
  });
  if (!error.empty()) return error;
  return session.inWorker(
      [&](stub::Worker& worker) {
        Ahead ahead(snapshot);
        change(ahead);
        SentAhead sent;
        worker.runQuiesced([&](stub::SessionState& on) {
          for (uint64_t number : {image, otherImage}) keepImage(on, sent, number, ahead.key);
          sent.made.follow(on, ahead.state, ahead.records);
          look(on);
        });
        proceed(worker, restore(worker, snapshot, nullptr, {.ahead = &sent}));
        KJ_REQUIRE(loads == expectedLoads, loads);
        requireFinished(session);
        worker.quiesce();
        worker.runQuiesced([&](stub::SessionState& on) {
          KJ_REQUIRE(on.of(0).modules.blobs.size() == 1, "modules of the session", on.of(0).modules.blobs.size());
          KJ_REQUIRE(on.of(0).blobs.find(otherImage) == nullptr, "an image of no module is there");
        });
      },
      "", countLoads);
}

}  // namespace

TEST_CASE("modules that were loaded ahead are not loaded again, and the program uses them") {
  TestSession session;
  CHECK(restoreAfter(
            session, 1, [](Ahead&) {},
            [](stub::SessionState& on) {
              KJ_REQUIRE(loads == 1, loads);
              KJ_REQUIRE(on.of(0).functions.contains(made::addFunction));
            }) == "");
}

TEST_CASE("objects that have ended since they were made ahead are destroyed before the session is restored") {
  TestSession session;
  CHECK(restoreAfter(
            session, 2, [](Ahead& ahead) { ahead.addOther(1); },
            [](stub::SessionState& on) { KJ_REQUIRE(on.of(0).modules.blobs.contains(otherModule)); }) == "");
}

TEST_CASE("modules whose group has changed are loaded anew") {
  TestSession session;
  CHECK(restoreAfter(
            session, 3, [](Ahead& ahead) { ahead.addOther(0); },
            [](stub::SessionState& on) { KJ_REQUIRE(on.of(0).modules.blobs.size() == 2); }) == "");
}

TEST_CASE("a module with variables is loaded again with the program's JIT options, in a resume and ahead of it") {
  SavedSession saved(loadForRegisters);
  for (bool isAhead : {false, true})
    CHECK(saved.session.inWorker(
              [&](stub::Worker& worker) {
                SentAhead sent;
                if (isAhead) {
                  Ahead ahead(saved.path);
                  worker.runQuiesced([&](stub::SessionState& on) {
                    keepImage(on, sent, image, ahead.key);
                    sent.made.follow(on, ahead.state, ahead.records);
                  });
                  KJ_REQUIRE(loads == 1 && registers == 40, loads, registers);
                }
                restore(worker, saved.path, nullptr, {.ahead = isAhead ? &sent : nullptr});
                KJ_REQUIRE(loads == 1 && registers == 40, loads, registers);
              },
              "", countLoads) == "");
}

TEST_CASE("records of kinds that cannot be made ahead are refused") {
  TestSession session;
  contains(restoreAfter(
               session, 0,
               [](Ahead& ahead) {
                 ahead.records.push_back(recordOf(api::Kind::STREAM, made::stream, moduleLoad(0, made::module, image)));
               },
               [](stub::SessionState&) {}),
           "stream 0x191 cannot be created before its session arrives");
}
