// Modules whose variables must be where they were, whatever was loaded and unloaded before.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <kj/debug.h>

#include <random>

#include "session-fixture.h"
#include "vgpu/api/handle.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

constexpr uint64_t KiB = 1024;

class History {
 public:
  History(TestSession& session, unsigned seed, unsigned devices) : session(session), random(seed), devices(devices) {}

  void load() {
    uint64_t number = ++last, module = makeHandle(api::Kind::MODULE, below(devices), 1, static_cast<uint32_t>(number));
    std::string image = imageOf(number);
    uint64_t blob = makeHandle(api::Kind::BLOB, handleDevice(module), 1, static_cast<uint32_t>(number));
    bringImage(session, blob, std::as_bytes(std::span(image.c_str(), image.size() + 1)));
    session.require(makeFrame<api::Cuda::ModuleLoadParams>(0, api::Method::moduleLoad,
                                                           static_cast<uint8_t>(handleDevice(module)), [&](auto p) {
                                                             p.setModule(module);
                                                             p.setBlob(blob);
                                                           }));
    live.push_back(module);
  }
  void unload() {
    auto gone = live.begin() + below(static_cast<unsigned>(live.size()));
    session.post(makeFrame<api::Cuda::ModuleUnloadParams>(
        0, api::Method::moduleUnload, static_cast<uint8_t>(handleDevice(*gone)), [&](auto p) { p.setHmod(*gone); }));
    live.erase(gone);
  }
  void run(unsigned steps) {
    for (unsigned step = 0; step < steps; ++step) live.empty() || below(5) < 3 ? load() : unload();
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
  std::vector<uint64_t> live;
};

// Empty where the session goes on in another worker, else what was said.
std::string restored(unsigned seed, unsigned steps, unsigned devices) {
  TestSession session;
  std::string list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
  std::string settings = fmt::format("memory=64GiB,devices={}", devices);
  std::string said = session.inWorker(
      [&](stub::Worker& worker) {
        worker.proceed();
        History(session, seed, devices).run(steps);
        session.require(synchronize());
        session.commit();
        worker.quiesce();
        save(worker, path, list, someIdentity(), nullptr);
      },
      settings);
  if (!said.empty()) return said;
  return session.inWorker([&](stub::Worker& worker) { restore(worker, path, nullptr); }, settings);
}

}  // namespace

TEST_CASE("variables are where they were after any history of loads and unloads") {
  for (unsigned seed = 1; seed <= 24; ++seed) {
    CAPTURE(seed);
    CHECK(restored(seed, 40, 1) == "");
  }
}

TEST_CASE("variables of two devices are where they were after any history of loads and unloads") {
  for (unsigned seed = 101; seed <= 108; ++seed) {
    CAPTURE(seed);
    CHECK(restored(seed, 40, 2) == "");
  }
}
