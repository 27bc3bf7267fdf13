#include "tools/vgpu-bench/options.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <set>

#include "tools/vgpu-bench/cases.h"

namespace vgpu::bench {
namespace {

using Words = std::vector<std::string>;

struct Parsed {
  BenchOptions options;
  int code = -1;
  bool goesOn;
  explicit Parsed(const Words& words) { goesOn = parseOptions(words, options, code); }
};

std::vector<std::string> namesOf(const std::vector<Case>& cases) {
  std::vector<std::string> names;
  for (const Case& each : cases) names.push_back(each.name);
  return names;
}

}  // namespace

TEST_CASE("arguments after -- are the command, whatever they look like") {
  Parsed parsed({"--rounds", "3", "--", "./app", "--rounds", "--", "x"});
  CHECK(parsed.goesOn);
  CHECK(parsed.options.rounds == 3);
  CHECK(parsed.options.command == Words{"./app", "--rounds", "--", "x"});
  CHECK(Parsed({}).options.rounds == 7);
  CHECK(Parsed({"--only", "a", "--only", "b"}).options.only == Words{"a", "b"});
}

TEST_CASE("an invalid command line returns 2, help and version 0") {
  for (const Words& words : {Words{"app"}, Words{"--"}, Words{"--what"}, Words{"--rounds", "0"}, Words{"--rounds", "x"},
                             Words{"--quick", "--", "app"}, Words{"--only", "calls", "--", "app"},
                             Words{"--list", "--", "app"}, Words{"--node", "n", "--device", "cuda"}, Words{"--csv"}}) {
    Parsed parsed(words);
    CHECK(!parsed.goesOn);
    CHECK(parsed.code == 2);
  }
  CHECK(Parsed({"--help"}).code == 0);
  CHECK(Parsed({"--version"}).code == 0);
}

TEST_CASE("a pattern selects cases by name, by group, or by the part after the slash") {
  auto all = installedCases(false);
  CHECK(matching(all, {}).size() == all.size());
  CHECK(namesOf(matching(all, {"calls"})) == Words{"calls/start", "calls/launches", "calls/allocation", "calls/queries", "calls/two-gpus", "calls/libraries", "calls/posted", "calls/graphs"});
  CHECK(namesOf(matching(all, {"scan"})) == Words{"programs/scan"});
  CHECK(namesOf(matching(all, {"copies/pin*", "together/[12]"})) == Words{"copies/pinned", "together/1", "together/2"});
  CHECK(matching(all, {"no-such-case"}).empty());
}

TEST_CASE("eleven programs, four numbers of concurrent programs, and calls are installed, all with different names") {
  auto all = installedCases(false);
  CHECK(matching(all, {"programs"}).size() == 11);
  CHECK(matching(all, {"together"}).back().copies == 8);
  std::set<std::string> names;
  for (const Case& each : all) names.insert(each.name);
  CHECK(names.size() == all.size());
  for (const Case& each : installedCases(true)) CHECK(each.command.at(2) == "quick");
}

TEST_CASE("the target of a figure depends on its name; small copies and large ones differ") {
  auto ratio = [](const char* name) { return wantedOf(name).value_or(Wanted{Wanted::Kind::ratio, -1}).limit; };
  CHECK(ratio("posted launch") == 0.05);
  CHECK(ratio("sustained launches, 20000") == 1.02);
  CHECK(ratio("copy to device, pageable, 64 KiB") == 0.9);
  CHECK(ratio("copy from device, pageable, 4 B") == 0.9);
  CHECK(ratio("copy to device, pageable, 1 MiB") == 0.5);
  CHECK(ratio("copy from device, pageable, 256 MiB") == 0.6);
  CHECK(ratio("copy from device, pinned, 64 KiB") == 1.1);
  CHECK(ratio("copy from device, pinned, 16 MiB") == 1.02);
  CHECK(ratio("malloc + free, pinned, 1 GiB") == 0.1);
  CHECK(ratio("11 programs, steady, geometric mean") == 1.0);
  CHECK(ratio("11 programs, whole process, geometric mean") == 0.8);
  CHECK(ratio("8 programs at once") == 1.0);
  CHECK(!wantedOf("4 programs at once"));
  CHECK(!wantedOf("scan, steady"));
  CHECK(wantedOf("memory of a program that copies nothing")->kind == Wanted::Kind::difference);
}

}  // namespace vgpu::bench
