// Snapshots that cannot be written, and snapshots that must not be trusted: a clear message, and nothing lost.
#include <doctest/doctest.h>

#include "../emulator/container-samples.h"
#include "vgpu/snapshot/manifest.h"
#include "../sanitizer-share.h"
#include "session-fixture.h"
#include "stub/worker/execution.h"
#include "vgpu/api/library.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::test;

namespace {

struct Saved {
  Saved() {
    CHECK(session.inWorker([&](stub::Worker& worker) {
      buildAndStop(session, worker);
      worker.runQuiesced([](stub::SessionState& on) { on.output.load(std::string(100, '.')); });  // the output of kernels' printf
      save(worker, path, session.scratch.path + "/list", someIdentity(), nullptr);
    }) == "");
    program = session.program();
  }
  // The message with which restore refuses; the program's memory must be unchanged.
  std::string refusal(const std::string& settings = "") {
    std::string text = session.inWorker([&](stub::Worker& worker) { restore(worker, path, nullptr); }, settings);
    CHECK(session.program() == program);
    return text;
  }
  void finish() {
    CHECK(session.inWorker([&](stub::Worker& worker) {
      proceed(worker, restore(worker, path, nullptr));
      requireFinished(session);
    }) == "");
  }
  template <typename Change>
  void forge(Change change) {
    forgeManifest(path, change);
  }

  TestSession session;
  std::string path = session.scratch.path + "/snapshot";
  std::vector<std::byte> program;
};

}  // namespace

TEST_CASE(
    "every file of a snapshot that was changed, truncated or removed is refused by name, and the intact snapshot resumes") {
  Saved saved;
  for (std::string name : namesIn(saved.path)) {
    CAPTURE(name);
    std::string file = saved.path + "/" + name, good = readFile(file);
    REQUIRE((good.size() > 30 || isPackFile(name)));  // a machine writes as many packs as it has processors, and there are few chunks
    if (sanitizerShare > 1 && isPackFile(name) && good.empty()) continue;
    std::vector<size_t> places{0, good.size() / 3, good.size() / 2, good.size() - 1}, sizes{0, good.size() / 2, good.size() - 1};
    if (sanitizerShare > 1) places = {good.size() / 3}, sizes = {good.size() / 2};
    for (size_t at : places) {
      if (good.empty()) continue;
      std::string bad = good;
      bad[at] = static_cast<char>(bad[at] ^ 0x10);
      writeFile(file, bad);
      contains(saved.refusal(), "file " + name + ": c");  // "checksum" or "chunk"
    }
    for (size_t size : sizes) {
      if (good.empty()) continue;
      writeFile(file, good.substr(0, size));
      contains(saved.refusal(), "file " + name + ": ");
    }
    writeFile(file, good + "x");
    contains(saved.refusal(), "file " + name + ": ");
    std::filesystem::remove(file);
    contains(saved.refusal(), "file " + name + ": cannot be opened");
    writeFile(file, good);
  }
  saved.finish();
}

TEST_CASE("a variable that lies elsewhere is refused by its symbol, with both addresses") {
  Saved saved;
  std::string good = readFile(saved.path + "/manifest.json");
  saved.forge([](auto& json) {
    for (auto& row : json["state"]["variables"])
      if (row[1] == "total") row[2] = row[2].template get<uint64_t>() + 256;
  });
  std::string text = saved.refusal();
  contains(text, "the variable total is at 0x");
  contains(text, "the program knows it at 0x");
  writeFile(saved.path + "/manifest.json", good);
  saved.finish();
}

TEST_CASE("a snapshot of another version, of other arenas, or with memory that no object owns is refused") {
  Saved saved;
  std::string good = readFile(saved.path + "/manifest.json");
  saved.forge([](auto& json) { json["version"] = snapshotVersion + 1; });
  contains(saved.refusal(), "file manifest.json: format version " + std::to_string(snapshotVersion + 1) + ", and this build");
  writeFile(saved.path + "/manifest.json", good);
  saved.forge([](auto& json) { json["arenas"]["hostBase"] = 4096; });
  contains(saved.refusal(), "file manifest.json: arenas");
  writeFile(saved.path + "/manifest.json", good);
  saved.forge([](auto& json) { json["state"]["memory"][0][1] = 0x2000'4000'0000; });
  contains(saved.refusal(), "belong to no object of the snapshot");
  writeFile(saved.path + "/manifest.json", good);
  saved.forge([](auto& json) { json["rings"][0][2] = json["rings"][0][2].template get<uint64_t>() + 64; });
  contains(saved.refusal(), "file pending-calls: position");
  writeFile(saved.path + "/manifest.json", good);
  saved.finish();
}

TEST_CASE("a call that has another name or other fields in this build, or does not exist in it, is refused with both") {
  Saved saved;
  std::string good = readFile(saved.path + "/manifest.json");
  auto refused = [&](auto change, const std::string& why) {
    saved.forge([&](auto& json) { change(json["methods"]); });
    contains(saved.refusal(), "file manifest.json: methods: the call " + why);
    writeFile(saved.path + "/manifest.json", good);
  };
  auto number = std::to_string(static_cast<unsigned>(api::Method::streamCreate));
  std::string ours = api::infoOf(api::Method::streamCreate).signature;
  CHECK(ours == "streamCreate(phStream u64, flags u32, priority i32)");
  refused([](auto& methods) {
    for (auto& row : methods)
      if (row[0] == static_cast<unsigned>(api::Method::streamCreate)) row[1] = "streamCreate(phStream u64, flags u32)";
  }, number + " is streamCreate(phStream u64, flags u32) in the snapshot and " + ours + " in this build");
  refused([](auto& methods) { methods.push_back({68, "copyInline(destination u64, stream u64, data bytes)"}); },
          "68 is copyInline(destination u64, stream u64, data bytes) in the snapshot and no call");
  refused([](auto& methods) { methods.push_back({65000, "graphLaunch(graph u64)"}); }, "65000 is graphLaunch(graph u64) in the snapshot and no call");
  saved.finish();
}

TEST_CASE("a library call that has other arguments in this build, or does not exist in it, is refused by name") {
  Saved saved;
  std::string good = readFile(saved.path + "/manifest.json");
  auto refused = [&](uint64_t signature, const char* symbol) {
    saved.forge([&](auto& json) { json["libraryCalls"].push_back({signature, symbol}); });
    contains(saved.refusal(), std::string("file manifest.json: libraryCalls: this build has no call ") + symbol);
    writeFile(saved.path + "/manifest.json", good);
  };
  refused(77, "cublasSgemm_v2");
  refused(api::libraryEntries[0].signature, "cublasNothing");
  saved.finish();
}

TEST_CASE("images that no module uses, that appear twice, or that exceed a session's limit are refused") {
  Saved saved;
  std::string good = readFile(saved.path + "/manifest.json");
  auto refused = [&](auto change, const char* why) {
    saved.forge([&](auto& json) { change(json["blobs"]); });
    contains(saved.refusal(), why);
    writeFile(saved.path + "/manifest.json", good);
  };
  refused([](auto& blobs) { blobs.push_back({77, 3ull << 30}); }, "file manifest.json: blobs: no module uses image 77");
  refused([](auto& blobs) { blobs.push_back(blobs[0]); }, "file manifest.json: blobs: image 1 is listed twice");
  refused([](auto& blobs) { blobs[0][1] = 0; }, "file manifest.json: blobs: image 1 is listed twice or is empty");
  refused([](auto& blobs) { blobs[0][1] = 5ull << 30; }, "file manifest.json: field blobs");
  saved.finish();
}

TEST_CASE("an old snapshot of a program that has gone on is refused") {
  Saved saved;
  CHECK(saved.session.inWorker([&](stub::Worker& worker) {
    proceed(worker, restore(worker, saved.path, nullptr));
    requireFinished(saved.session);
    worker.quiesce();
  }) == "");
  saved.program = saved.session.program();
  contains(saved.refusal(), "does not match the state in which the program waits");
}

TEST_CASE("a save that fails leaves no files, names the reason, and the program goes on") {
  SmallDisk disk("size=64k");
  if (!disk.mounted) return;  // only root may mount
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    auto refused = [&](const std::string& path, const std::string& list) {
      std::string text;
      KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { save(worker, path, list, someIdentity(), nullptr); }))
        text = exception->getDescription().cStr();
      return text;
    };
    std::string list = session.scratch.path + "/list", full = disk.scratch.path + "/snapshot";
    buildAndStop(session, worker);
    writeFile(disk.scratch.path + "/filler", std::string(60'000, 'x'));
    std::string text = refused(full, list);
    KJ_REQUIRE(text.find("No space left on device") != std::string::npos && text.find(full) != std::string::npos,
               text.c_str());
    KJ_REQUIRE(text.find("the program goes on") != std::string::npos, text.c_str());
    KJ_REQUIRE(namesIn(disk.scratch.path) == std::set<std::string>{"filler"});
    disk.makeReadOnly();
    text = refused(full, list);
    KJ_REQUIRE(text.find("Read-only file system") != std::string::npos, text.c_str());
    text = refused(session.scratch.path, list);
    KJ_REQUIRE(text.find("it is not empty") != std::string::npos, text.c_str());
    text = refused(session.scratch.path + "/snapshot", session.scratch.path);
    KJ_REQUIRE(text.find("there is no object list in") != std::string::npos, text.c_str());
    KJ_REQUIRE(!std::filesystem::exists(session.scratch.path + "/snapshot"));
    worker.proceed();
    requireFinished(session);
  }) == "");
}

TEST_CASE("a program whose module cannot be parsed is not saved, gets the reason, and goes on") {
  constexpr uint64_t module = 102, blob = 2;
  std::string ptx = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .u32 there;\n";
  std::string other = member(1, 100, ptx, Packing::zstd);  // for other architectures, so that this device loads the module
  other[64 + 12] ^= 0x55;
  std::string image = fatbinary(member(1, 70, ptx, Packing::zstd) + other);
  TestSession session;
  CHECK(session.inWorker([&](stub::Worker& worker) {
    worker.proceed();
    bringImage(session, blob, std::as_bytes(std::span(image)));
    session.require(moduleLoad(0, module, blob));
    session.commit();
    worker.quiesce();
    std::string text, list = session.scratch.path + "/list", path = session.scratch.path + "/snapshot";
    KJ_IF_MAYBE (exception, kj::runCatchingExceptions([&] { save(worker, path, list, someIdentity(), nullptr); }))
      text = exception->getDescription().cStr();
    KJ_REQUIRE(text.find("module 0x66") != std::string::npos, text.c_str());
    KJ_REQUIRE(text.find("does not decompress") != std::string::npos, text.c_str());
    KJ_REQUIRE(text.find("use malloc") == std::string::npos, text.c_str());
    KJ_REQUIRE(text.find("The program goes on") != std::string::npos, text.c_str());
    worker.proceed();
    session.require(synchronize());
  }) == "");
}
