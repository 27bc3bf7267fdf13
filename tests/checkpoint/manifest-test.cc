#include "vgpu/snapshot/manifest.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "checkpoint/state.h"
#include "vgpu/api/handle.h"
#include "vgpu/base/sizes.h"
#include "../files.h"
#include "../manifest-text.h"
#include "../sanitizer-share.h"

using namespace vgpu;
using namespace vgpu::checkpoint;
using namespace vgpu::snapshot;
using namespace vgpu::test;

namespace {

Row number(auto... cells) { return {static_cast<uint64_t>(cells)...}; }

Manifest sample() {
  Manifest m;
  m.software = "0.1.0";
  m.created = 1'700'000'000;
  m.identity = {"id", "name", "/bin/program", 1234, 1000, "/run/sessions/id/reattach.sock", {"abc", "def"}};
  m.devices = {{"GPU", "00112233445566778899aabbccddeeff", 4096, 90, 12.5}, {"GPU", "ff", 4096, 90, 0.1}};
  m.arenas = arenasOfThisBuild();
  m.rings = {{0, 64, 192}};
  m.objectCount = 3;
  m.deviceBytes = 4413;
  m.blobs = {{1, 100}};
  m.state["memory"] = {number(0, 0x2000'0000'0000, 4096), number(1, 0x2100'0000'0000, 1)};
  m.state["blocks"] = {number(77, 0x5000'0000'0000, 64 << 20), number(78, 0x5000'0800'0000, 32 << 20)};
  m.state["modules"] = {number(0, 77, 1, 1, 0), number(0, 78, 1, 0, 5)};
  m.state["arrays"] = {number(11, 300), number(12, 16)};
  m.state["variables"] = {{uint64_t{77}, "head", uint64_t{0x7f00'0000'0100}, uint64_t{8}}};
  m.state["textures"] = {number(21, 0, 3, 0), number(22, 1, 1, 1)};
  m.state["eventTimes"] = {{uint64_t{5}, 1.0 / 3}, {uint64_t{6}, 2.0}};
  m.state["librarySettings"] = {{uint64_t{31}, uint64_t{0}, "cublasSetMathMode", uint64_t{9}, uint64_t{0}, "0011aaff"}};
  m.state["physical"] = {number(makeHandle(api::Kind::PHYSICAL, 0, 1, 0), 4 * MiB, 2, 5, UINT64_MAX)};
  m.state["tiles"] = {number(makeHandle(api::Kind::ARRAY, 0, 1, 0), makeHandle(api::Kind::PHYSICAL, 0, 1, 0), 64 * KiB, 1, 0, 0, 0, 0, 0, 0,
                             128, 128, 1)};
  m.state["launches"] = {number(makeHandle(api::Kind::FUNCTION, 1, 1, 0), 264, 256, 4096, 0)};
  m.state["graphSettings"] = {{uint64_t{41}, uint64_t{2}, api::infoOf(api::Method::graphEnable).signature, "0011223344556677"},
                              {uint64_t{42}, uint64_t{0x7ffd00074300}, "handle", ""},
                              {uint64_t{42}, uint64_t{0}, "upload", ""}};
  m.libraryCalls = {{9, "cublasSetMathMode"}};
  for (const char* name : dataFiles) m.files[name] = {10, checksumOf(bytesOf(name))};
  m.packs = {0, 12, 7};
  m.digestKey = *DigestKey::parse("00112233445566778899aabbccddeeff");
  return m;
}

Manifest readText(const ScratchDirectory& scratch, const std::string& text) {
  writeFile(scratch.path + "/manifest.json", text);
  return readManifest(SnapshotReader(scratch.path));
}

// The sample with `change` applied to its JSON, sealed as SnapshotWriter does.
template <typename Change>
std::string changed(Change change) {
  auto json = manifestOf(encodeManifest(sample()));
  change(json);
  return sealed(json);
}

}  // namespace

TEST_CASE("a manifest is read back unchanged") {
  ScratchDirectory scratch;
  Manifest read = readText(scratch, encodeManifest(sample())), m = sample();
  CHECK(read.version == snapshotVersion);
  CHECK(read.software == m.software);
  CHECK(read.created == m.created);
  CHECK(read.identity.session == "id");
  CHECK(read.identity.name == "name");
  CHECK(read.identity.program == "/bin/program");
  CHECK(read.identity.pid == 1234);
  CHECK(read.identity.reattach == "/run/sessions/id/reattach.sock");
  CHECK(read.identity.sharesWith == std::vector<std::string>{"abc", "def"});
  REQUIRE(read.devices.size() == 2);
  CHECK(read.devices[0].uuid == m.devices[0].uuid);
  CHECK(read.devices[0].clock == 12.5);
  CHECK(read.devices[1].clock == 0.1);
  CHECK(read.arenas == m.arenas);
  CHECK(read.rings == m.rings);
  CHECK(read.objectCount == 3);
  CHECK(read.blobs == m.blobs);
  CHECK(read.state == m.state);
  CHECK(read.libraryCalls == m.libraryCalls);
  CHECK(read.files == m.files);
  CHECK(read.packs == m.packs);
  CHECK(read.digestKey == m.digestKey);
}

TEST_CASE("a table that belongs to no kind is refused by name") {
  ScratchDirectory scratch;
  auto refusal = [&](auto change) -> std::string {
    Manifest manifest = readText(scratch, changed([&](auto& json) { change(json["state"]); }));
    try {
      requireValid(SnapshotReader(scratch.path), manifest);
    } catch (const kj::Exception& exception) {
      return exception.getDescription().cStr();
    }
    return "";
  };
  auto refused = [&](auto change, const char* why) {
    std::string text = refusal(change);
    INFO(text);
    CHECK(text.find(why) != std::string::npos);
  };
  CHECK(refusal([](auto&) {}) == "");
  refused([](auto& state) { state["graphs"] = nlohmann::json::array(); }, "state graphs: this build does not know this kind of objects");
  refused([](auto& state) { state["streams"] = nlohmann::json::array(); }, "state streams: this build does not know this kind");
  refused([](auto& state) { state.erase("arrays"); }, "state arrays is missing");
  refused([](auto& state) { state["modules"][1][3] = 2; }, "state modules: row 1 is invalid");
  refused([](auto& state) { state["blocks"][0][1] = 0x2000'0000'0000; }, "state blocks: row 0 is invalid");
  refused([](auto& state) { state["blocks"][0][1] = 0x5000'0000'1000; }, "state blocks: row 0 is invalid");
  refused([](auto& state) { state["blocks"][1][2] = 1ull << 60; }, "state blocks: row 1 is invalid");
  refused([](auto& state) { state["memory"][0][0] = 2; }, "state memory: row 0 is invalid");
  refused([](auto& state) { state["memory"][1][1] = "text"; }, "state memory: row 1 is invalid");
  refused([](auto& state) { state["memory"][1].push_back(1); }, "state memory: row 1 is invalid");
  refused([](auto& state) { state["arrays"][1][1] = 0; }, "state arrays: row 1 is invalid");
  refused([](auto& state) { state["librarySettings"][0][5] = "0g"; }, "state librarySettings: row 0 is invalid");
  refused([](auto& state) { state["physical"][0][0] = 7; }, "state physical: row 0 is invalid");
  refused([](auto& state) { state["physical"][0][1] = 4096; }, "state physical: row 0 is invalid");
  refused([](auto& state) { state["physical"][0][2] = 3; }, "state physical: row 0 is invalid");
  refused([](auto& state) { state["launches"][0][0] = makeHandle(api::Kind::FUNCTION, 2, 1, 0); },
          "state launches: row 0 is invalid");
  refused([](auto& state) { state["launches"][0][2] = 1025; }, "state launches: row 0 is invalid");
  refused([](auto& state) { state["graphSettings"][0][2] = "graphEnable(graph u64)"; }, "state graphSettings: row 0 is invalid");
  refused([](auto& state) { state["graphSettings"][1][3] = "0011223344556677"; }, "state graphSettings: row 1 is invalid");
  refused([](auto& state) { state["graphSettings"][2][2] = "uploaded"; }, "state graphSettings: row 2 is invalid");
  refused([](auto& state) { state["graphSettings"][0][3] = "00112233445566"; }, "state graphSettings: row 0 is invalid");
  refused([](auto& state) { state["textures"][0][1] = 7; }, "state textures: row 0 is invalid");
  refused([](auto& state) { state["textures"][0][2] = uint64_t{1} << 40; }, "state textures: row 0 is invalid");
  refused([](auto& state) { state["variables"][0][2] = ~uint64_t{0} - 0x1ff; }, "state variables: row 0 is invalid");
  refused([](auto& state) { state["variables"][0][3] = ~uint64_t{0} / 2; }, "state variables: row 0 is invalid");
  refused([](auto& state) { state["eventTimes"][0][1] = 3; }, "state eventTimes: row 0 is invalid");
}

TEST_CASE("the header is read without the tables, whatever follows it") {
  ScratchDirectory scratch;
  std::string text = encodeManifest(sample());
  size_t end = text.find('\n', text.find('\n') + 1) + 1;
  auto header = [&](const std::string& written) {
    writeFile(scratch.path + "/manifest.json", written);
    return readHeader(SnapshotReader(scratch.path));
  };
  Header read = header(text.substr(0, end) + std::string(128 << 20, 'x'));
  CHECK(read.identity.reattach == "/run/sessions/id/reattach.sock");
  CHECK(read.identity.sharesWith == std::vector<std::string>{"abc", "def"});
  CHECK(read.identity.owner == 1000);
  CHECK(read.deviceBytes == 4413);
  CHECK(read.devices.size() == 2);
  CHECK(read.files.at("chunks").bytes == 10);
  CHECK_THROWS_WITH_AS(readText(scratch, text.substr(0, end) + std::string(1000, 'x')), doctest::Contains("checksum"), kj::Exception);
  CHECK_THROWS_WITH_AS(header(text.substr(0, end - 1)), doctest::Contains("checksum"), kj::Exception);
  CHECK_THROWS_WITH_AS(header(std::string(1 << 20, ' ') + text), doctest::Contains("checksum"), kj::Exception);
  CHECK_THROWS_WITH_AS(readText(scratch, text + "x"), doctest::Contains("checksum: there is data after"), kj::Exception);
}

TEST_CASE("a program whose name is too long for a header is not saved") {
  Manifest m = sample();
  m.identity.program = std::string(maxHeaderBytes, 'x');
  CHECK_THROWS_WITH_AS(encodeManifest(m), doctest::Contains("header would be too long"), kj::Exception);
}

TEST_CASE("a name that is not valid text does not prevent a save") {
  ScratchDirectory scratch;
  Manifest m = sample();
  m.identity.program = "/bin/\xff\xfe";
  CHECK(readText(scratch, encodeManifest(m)).identity.program.starts_with("/bin/"));
}

TEST_CASE("a manifest with a bit changed in any byte is refused by name") {
  ScratchDirectory scratch;
  std::string text = encodeManifest(sample());
  for (size_t byte = 0; byte < text.size(); byte += sanitizerShare) {
    std::string bad = text;
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << byte % 8));
    CHECK_THROWS_WITH_AS(readText(scratch, bad), doctest::Contains("file manifest.json: checksum"), kj::Exception);
  }
}

TEST_CASE("a manifest cut off anywhere is refused by name") {
  ScratchDirectory scratch;
  std::string text = encodeManifest(sample());
  for (size_t size = 0; size < text.size(); size += sanitizerShare)
    CHECK_THROWS_WITH_AS(readText(scratch, text.substr(0, size)), doctest::Contains("file manifest.json: checksum"),
                         kj::Exception);
}

TEST_CASE("a manifest of another format version is refused by that") {
  ScratchDirectory scratch;
  std::string text = changed([](auto& json) {
    json["version"] = snapshotVersion + 1;
    json.erase("devices");  // devices need not have a format that this version knows
  });
  std::string says = "file manifest.json: format version " + std::to_string(snapshotVersion + 1) + ", and this build";
  CHECK_THROWS_WITH_AS(readText(scratch, text), doctest::Contains(says.c_str()), kj::Exception);
}

TEST_CASE("a sealed manifest with a field that is missing, or of another type, is refused by the field's name") {
  ScratchDirectory scratch;
  auto fields = manifestOf(encodeManifest(sample()));
  for (auto& [name, value] : fields.items()) {
    if (name == "format") continue;
    CAPTURE(name);
    std::string field = name;
    CHECK_THROWS_AS(readText(scratch, changed([&](auto& json) { json.erase(field); })), kj::Exception);
    CHECK_THROWS_AS(readText(scratch, changed([&](auto& json) { json[field] = nullptr; })), kj::Exception);
    CHECK_THROWS_AS(readText(scratch, changed([&](auto& json) { json[field] = {{"a", -1}}; })), kj::Exception);
  }
  CHECK_THROWS_WITH_AS(readText(scratch, changed([](auto& json) { json["state"]["memory"][0][1] = -1; })),
                       doctest::Contains("field state"), kj::Exception);
  CHECK_THROWS_WITH_AS(readText(scratch, changed([](auto& json) { json["state"]["memory"][0] = 7; })),
                       doctest::Contains("field state"), kj::Exception);
  CHECK_THROWS_WITH_AS(readText(scratch, changed([](auto& json) { json["files"].erase("pending-calls"); })),
                       doctest::Contains("field pending-calls"), kj::Exception);
  CHECK_THROWS_WITH_AS(readText(scratch, changed([](auto& json) { json["format"] = "tar"; })),
                       doctest::Contains("does not describe a snapshot"), kj::Exception);
  CHECK_THROWS_WITH_AS(readText(scratch, sealManifest("[1,", "{}")), doctest::Contains("does not describe a snapshot"),
                       kj::Exception);
}
