#include "tools/vgpu-bench/write.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

namespace vgpu::bench {
namespace {

Results example() {
  Results results;
  results.node = "(cuda, 1 device: NVIDIA \"H200\")";
  results.rounds = 3;
  results.hasNative = true;
  results.rows = {{"calls", "posted launch", "us", {4, 3, 5}, {0.1, 0.2, 0.3}},
                  {"calls", "first CUDA call", "us", {2e5, 2e5, 2e5}, {38e3, 38e3, 38e3}},
                  {"copies", "copy <&> \"x\", 4 B", "us", {1, 1, 1}, {20, 20, 20}},
                  {"extremes", "alone", "us", {}, {1500, 2500, 3500}},
                  {"programs", "11 programs, steady, worst", "", {}, {}, 1.04},
                  {"calls", "memory of a program that copies nothing", "KiB", {2048}, {4096}}};
  return results;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("the table shows spreads in readable units, ratios, and missed targets") {
  std::string table = writeTable(example());
  CHECK(has(table, "| posted launch "));
  CHECK(has(table, "| 3.00 / 4.00 / 5.00 µs "));
  CHECK(has(table, "| 0.050 "));
  CHECK(has(table, "≤ 0.05    | met "));
  CHECK(has(table, "| 200.00 / 200.00 / 200.00 ms "));
  CHECK(has(table, "| 1.50 / 2.50 / 3.50 ms "));
  CHECK(has(table, "| 1.040  | ≤ 1.03    | **missed** |"));
  CHECK(has(table, "≤ +32 MiB | met "));
  CHECK(count(table, "\n") == 2 + example().rows.size());
}

TEST_CASE("CSV has one line per row, quotes names, and leaves missing values empty") {
  std::string csv = writeCsv(example());
  CHECK(has(csv, "\ncalls,\"posted launch\",us,3,4,5,0.1,0.2,0.3,0.05,0.05,ratio,true\n"));
  CHECK(has(csv, "\ncopies,\"copy <&> \"\"x\"\", 4 B\",us,1,1,1,20,20,20,20,,,\n"));
  CHECK(has(csv, "\nextremes,\"alone\",us,,,,1500,2500,3500,,,,\n"));
  CHECK(has(csv, "\nprograms,\"11 programs, steady, worst\",,,,,,,,1.04,1.03,ratio,false\n"));
  CHECK(count(csv, "\n") == 1 + example().rows.size());
}

TEST_CASE("JSON contains every sample") {
  auto all = nlohmann::json::parse(writeJson(example()));
  CHECK(all["node"] == example().node);
  CHECK(all["native"] == true);
  auto row = all["rows"][0];
  CHECK(row["native"]["samples"] == std::vector<double>{4, 3, 5});
  CHECK(row["virtual"]["median"] == 0.2);
  CHECK(row["met"] == true);
  CHECK(row["wanted"]["most"] == 0.05);
  CHECK(all["rows"][3]["native"].is_null());
  CHECK(all["rows"][3]["ratio"].is_null());
  CHECK(all["rows"][5]["wanted"]["of"] == "difference");
}

TEST_CASE("a chart has a bar for each ratio of its group, longer the further it is from 1, and a mark at its target") {
  std::string calls = writeChart(example(), "calls");
  CHECK(count(calls, "<rect") == 2);
  CHECK(count(calls, "stroke-width=\"2.5\"") == 2);
  CHECK(has(calls, ">0.050</text>"));
  CHECK(has(calls, ">0.190</text>"));
  auto widthOfBar = [&](size_t index) {
    size_t at = 0;
    for (size_t i = 0; i <= index; ++i) at = calls.find("<rect", at) + 1;
    return std::stod(calls.substr(calls.find("width=\"", at) + 7));
  };
  CHECK(widthOfBar(0) > widthOfBar(1));
  std::string copies = writeChart(example(), "copies");
  CHECK(has(copies, "copy &lt;&amp;&gt; \"x\", 4 B"));
  CHECK(writeChart(example(), "extremes").empty());
  CHECK(groupsOf(example()) == std::vector<std::string>{"calls", "copies", "extremes", "programs"});
}

}  // namespace vgpu::bench
