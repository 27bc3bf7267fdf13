// Modules whose variables must keep their addresses, whatever was loaded and unloaded before.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include <cstdlib>
#include <random>

#include "../sanitizer-share.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"
#include "vgpu/api/handle.h"
#include "vgpu/base/sizes.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

class History {
 public:
  History(TestSession& session, unsigned seed, unsigned devices) : session(session), random(seed), devices(devices) {}

  void load() {
    uint64_t number = ++last, module = makeHandle(api::Kind::MODULE, below(devices), 1, static_cast<uint32_t>(number));
    std::string image = imageOf(number);
    uint64_t blob = makeHandle(api::Kind::BLOB, handleDevice(module), 1, static_cast<uint32_t>(number));
    live.push_back({module, blob});
    if (pretends) return;
    bringImage(session, blob, std::as_bytes(std::span(image.c_str(), image.size() + 1)));
    session.require(makeFrame<api::Cuda::ModuleLoadParams>(0, api::Method::moduleLoad, static_cast<uint8_t>(handleDevice(module)),
                                                           [&](auto p) {
                                                             p.setModule(module);
                                                             p.setBlob(blob);
                                                           }));
  }
  void unload() { unload(below(static_cast<unsigned>(live.size()))); }
  void unload(size_t which) {
    auto gone = live.begin() + static_cast<ptrdiff_t>(which);
    auto [module, blob] = *gone;
    live.erase(gone);
    if (pretends) return;
    auto device = static_cast<uint8_t>(handleDevice(module));
    session.post(
        makeFrame<api::Cuda::ModuleUnloadParams>(0, api::Method::moduleUnload, device, [&](auto p) { p.setHmod(module); }));
    session.post(makeFrame<api::Cuda::BlobDropParams>(0, api::Method::blobDrop, device, [&](auto p) { p.setBlob(blob); }));
  }
  // Counts the steps as done without executing them: to continue what another process has done.
  void pretend(unsigned steps) {
    pretends = true;
    run(steps);
    pretends = false;
  }
  void run(unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) {
      if (worker != nullptr && below(4) == 0) libraryLoads();
      live.empty() || below(5) < 3 ? load() : unload();
    }
  }
  // From now on a library in the worker loads modules of its own, too.
  void withLibrary(stub::Worker& with) { worker = &with; }
  bool mayLibraryLoad() {
    bool may = false;
    session.require(synchronize());
    worker->quiesce();
    worker->runQuiesced([&](stub::SessionState& on) { may = on.of(0).moduleGroups.mayLibraryLoad(); });
    worker->proceed();
    return may;
  }
  // A load that no recipe repeats, and whose address no rule determines.
  void libraryLoads() {
    auto device = below(devices);
    std::string image = imageOf(++last);
    if (pretends) return;
    session.require(synchronize());
    worker->quiesce();
    worker->runQuiesced([&](stub::SessionState& on) {
      auto& there = on.select(device);
      there.moduleGroups.letLibraryLoad();
      CUmodule own = nullptr;
      REQUIRE(there.driver.cuModuleLoadDataEx(&own, image.c_str(), 0, nullptr, nullptr) == CUDA_SUCCESS);
    });
    worker->proceed();
  }

 private:
  unsigned below(unsigned bound) { return static_cast<unsigned>(random() % bound); }

  std::string imageOf(uint64_t number) {
    static constexpr uint64_t sizes[] = {4,         100,       256,         1000,       1000,       5000, 64 * KiB,
                                         100 * KiB, 300 * KiB, 700 * KiB,   1024 * KiB, 1500 * KiB, 256,  600,
                                         2 * MiB,   3 * MiB,   2 * MiB + 4, 1900 * KiB, 400 * KiB,  2000, 40 * KiB};
    std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
    for (unsigned i = 0, count = 1 + below(5); i < count; ++i) {
      std::string name = fmt::format("v{}_{}", number, below(1000) * 10 + i);
      uint64_t bytes = sizes[below(std::size(sizes))];
      if (below(6) == 0)
        text += fmt::format(".visible .const .align 4 .b8 {}[{}];\n", name, bytes % (16 * KiB) + 4);
      else if (below(3) == 0)
        text += fmt::format(".visible .global .align 4 .u32 {} = 7;\n", name);
      else
        text += fmt::format(".visible .global .align 16 .b8 {}[{}];\n", name, bytes);
    }
    return text;
  }

  TestSession& session;
  std::mt19937 random;
  unsigned devices;
  uint64_t last = 0;
  std::vector<std::pair<uint64_t, uint64_t>> live;  // modules and their images
  bool pretends = false;
  stub::Worker* worker = nullptr;
};

void saveTo(TestSession& session, stub::Worker& worker, const std::string& path) {
  session.require(synchronize());
  session.commit();
  worker.quiesce();
  save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
}

std::string settingsOf(unsigned devices) { return fmt::format("memory=64GiB,devices={}", devices); }

// Suspends after `steps` steps, and again after as many more in a second worker. Returns the error; empty if the session is resumed in a
// third worker.
std::string restored(unsigned seed, unsigned steps, unsigned devices, bool hasLibrary = false,
                     const TestSession::Adapt& secondDriver = nullptr, const TestSession::Adapt& thirdDriver = nullptr) {
  TestSession session;
  std::string first = session.scratch.path + "/first", second = session.scratch.path + "/second";
  std::string said = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        History history(session, seed, devices);
        if (hasLibrary) history.withLibrary(worker);
        history.run(steps);
        saveTo(session, worker, first);
      },
      settingsOf(devices));
  if (!said.empty()) return said;
  said = session.inWorker(
      [&](stub::Worker& worker) {
        proceed(worker, restore(worker, first, nullptr));
        History history(session, seed, devices);
        if (hasLibrary) history.withLibrary(worker);
        history.pretend(steps);
        session.numberFrom(10 * steps);
        history.run(steps);
        saveTo(session, worker, second);
      },
      settingsOf(devices), secondDriver);
  if (!said.empty()) return said;
  return session.inWorker([&](stub::Worker& worker) { restore(worker, second, nullptr); }, settingsOf(devices), thirdDriver);
}

// The error of resuming a session in which the devices `loading` have loaded one library, in this order.
std::string restoredLibrary(const std::vector<unsigned>& loading) {
  static const std::string image =
      ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .align 4 .u32 own = 7;\n"
      ".visible .global .attribute(.managed) .align 4 .b8 shared[1000];\n";
  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  std::string said = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        for (uint32_t number = 0; unsigned device : loading) {
          uint64_t blob = makeHandle(api::Kind::BLOB, device, 1, ++number);
          bringImage(session, blob, std::as_bytes(std::span(image.c_str(), image.size() + 1)));
          session.require(makeFrame<api::Cuda::ModuleLoadParams>(0, api::Method::moduleLoad, static_cast<uint8_t>(device), [&](auto p) {
            p.setModule(makeHandle(api::Kind::MODULE, device, 1, number));
            p.setBlob(blob);
            p.setLibrary(5);
          }));
        }
        saveTo(session, worker, path);
      },
      settingsOf(3));
  if (!said.empty()) return said;
  return session.inWorker([&](stub::Worker& worker) { restore(worker, path, nullptr); }, settingsOf(3));
}

// How many histories to try. `make check-all` sets fifty times as many: a thousand, of which none may be refused.
unsigned long histories(unsigned usual) {
  const char* times = std::getenv("VGPU_HISTORIES");
  return times ? usual * std::stoul(times) : (usual + sanitizerShare - 1) / sanitizerShare;
}

// How many modules and images a snapshot keeps after `steps`.
struct Kept {
  size_t modules = 0, live = 0, images = 0;
  bool operator==(const Kept&) const = default;
};
Kept keptAfter(const std::function<void(History&)>& steps) {
  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  CHECK(session.inWorker(
            [&](stub::Worker& worker) {
              worker.proceed();
              History history(session, 1, 1);
              steps(history);
              saveTo(session, worker, path);
            },
            settingsOf(1)) == "");
  Manifest manifest = readManifest(SnapshotReader(path));
  Kept kept{.modules = manifest.state.at("modules").size(), .images = manifest.blobs.size()};
  for (auto& row : manifest.state.at("modules")) kept.live += numberIn(row, 3);
  return kept;
}

}  // namespace

TEST_CASE("an unloaded module and its image are kept as long as a module of its group lives, and no longer") {
  auto two = [](History& history) {
    history.load();
    history.load();
  };
  CHECK(keptAfter(two) == Kept{2, 2, 2});
  CHECK(keptAfter([&](History& history) {
          two(history);
          history.unload(0);
        }) == Kept{2, 1, 2});
  CHECK(keptAfter([&](History& history) {
          two(history);
          history.unload(0);
          history.load();  // in a group of its own
          history.unload(0);
        }) == Kept{1, 1, 1});
  CHECK(keptAfter([&](History& history) {
          two(history);
          history.unload(0);
          history.unload(0);
        }) == Kept{0, 0, 0});
}

TEST_CASE("variables are where they were after any history of loads and unloads, suspended twice") {
  for (unsigned seed = 1; seed <= histories(10); ++seed) {
    CAPTURE(seed);
    CHECK(restored(seed, 30, 1) == "");
  }
}

TEST_CASE("variables are where they were although a library has loaded modules of its own in between") {
  for (unsigned seed = 20001; seed <= 20000 + histories(6); ++seed) {
    CAPTURE(seed);
    CHECK(restored(seed, 30, 1, true) == "");
  }
}

TEST_CASE("variables of two devices are where they were after any history of loads and unloads") {
  for (unsigned seed = 10001; seed <= 10000 + histories(4); ++seed) {
    CAPTURE(seed);
    CHECK(restored(seed, 30, 2) == "");
  }
}

TEST_CASE("managed variables that devices share are where they were, whichever device has loaded them first") {
  CHECK(restoredLibrary({0, 1}) == "");
  CHECK(restoredLibrary({1, 0}) == "");
  CHECK(restoredLibrary({2, 0, 1}) == "");
}

TEST_CASE("variables of two devices are where they were on one GPU in the place of both, and on two again") {
  auto onOne = [](stub::Driver& driver) { driver.order = {0, 0}; };
  auto swapped = [](stub::Driver& driver) { driver.order = {1, 0}; };
  for (unsigned seed = 30001; seed <= 30000 + histories(4); ++seed) {
    CAPTURE(seed);
    CHECK(restored(seed, 20, 2, false, onOne, onOne) == "");
    CHECK(restored(seed, 20, 2, false, onOne, swapped) == "");
  }
}

TEST_CASE("a library that is in use may load modules as soon as the program has one") {
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    History history(session, 1, 1);
    history.withLibrary(worker);
    history.load();
    KJ_REQUIRE(!history.mayLibraryLoad());
    history.libraryLoads();
    KJ_REQUIRE(history.mayLibraryLoad());
    history.load();
    KJ_REQUIRE(history.mayLibraryLoad());
  }) == "");
}
