#include "tools/vgpu-bench/results.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <kj/function.h>

#include <cmath>

namespace vgpu::bench {
namespace {

std::string refusal(kj::FunctionParam<void()> work) {
  auto caught = kj::runCatchingExceptions([&] { work(); });
  KJ_IF_MAYBE (exception, caught) {
    return exception->getDescription().cStr();
  }
  return "";
}

Run runWith(std::vector<Figure> figures, std::string digest = "") {
  return {1000, 64, {{std::move(figures), std::move(digest)}}};
}

const Row& rowCalled(const Results& results, const std::string& name) {
  for (const Row& row : results.rows) {
    if (row.name == name) return row;
  }
  FAIL("there is no row ", name);
  return results.rows.front();
}

Case programCase(const std::string& name) {
  return {"programs/" + name, {name}, name + ", ", name + ", whole process"};
}

}  // namespace

TEST_CASE("the median of an even number of values is between the two middle ones") {
  CHECK(spreadOf({3, 1, 2}).median == 2);
  CHECK(spreadOf({4, 1, 3, 2}).median == 2.5);
  CHECK(spreadOf({5}).median == 5);
  Spread spread = spreadOf({7, 3, 9});
  CHECK(spread.least == 3);
  CHECK(spread.most == 9);
}

TEST_CASE("in a geometric mean of ratios, twice as fast and twice as slow cancel out") {
  CHECK(std::abs(geometricMean({0.5, 2}) - 1) < 1e-12);
  CHECK(std::abs(geometricMean({1, 10, 100}) - 10) < 1e-9);
}

TEST_CASE("figures are found among a program's other lines; their names may contain commas") {
  Report report = parseReport("hello\nfigure,copy, pinned, 4 B,us,1.5\nscan: ok\ndigest,00ff\nfigure,size,KiB,12\n");
  REQUIRE(report.figures.size() == 2);
  CHECK(report.figures[0].name == "copy, pinned, 4 B");
  CHECK(report.figures[0].unit == "us");
  CHECK(report.figures[0].value == 1.5);
  CHECK(report.figures[1].unit == "KiB");
  CHECK(report.digest == "00ff");
  for (const char* wrong : {"figure,", "figure,x", "figure,x,us", "figure,x,us,", "figure,x,us,1.5x"}) {
    CHECK(refusal([&] { parseReport(wrong); }).find("not a figure") != std::string::npos);
  }
}

TEST_CASE("the ratio is that of the medians, and is compared with the target") {
  Results results;
  Case launches{"calls/launches", {"calls"}};
  for (double native : {4., 3., 5.}) results.add(launches, Side::native, runWith({{"posted launch", "us", native}}));
  CHECK(!rowCalled(results, "posted launch").ratio());
  for (double now : {0.1, 0.2, 9.}) results.add(launches, Side::virtualized, runWith({{"posted launch", "us", now}}));
  const Row& row = rowCalled(results, "posted launch");
  CHECK(row.ratio().value() == doctest::Approx(0.05));
  CHECK(row.met().value());
  CHECK(row.group == "calls");
  Row slow{"calls", "posted launch", "us", {4}, {0.21}};
  CHECK(!slow.met().value());
  CHECK(!Row{"calls", "posted launch", "us", {0}, {1}}.ratio());
  CHECK(!Row{"calls", "nothing wanted", "us", {1}, {1}}.met());
}

TEST_CASE("programs have a steady-state time and a total time, and both have means") {
  Results results;
  for (auto [name, factor] : {std::pair{"a", 2.}, std::pair{"b", 0.5}}) {
    results.add(programCase(name), Side::native, runWith({{"steady", "us", 10}}));
    results.add(programCase(name), Side::virtualized, runWith({{"steady", "us", 10 * factor}}));
  }
  results.conclude();
  CHECK(rowCalled(results, "a, steady").ratio().value() == doctest::Approx(2));
  CHECK(rowCalled(results, "b, whole process").ratio().value() == doctest::Approx(1));
  CHECK(rowCalled(results, "2 programs, steady, geometric mean").met().value());
  CHECK(rowCalled(results, "2 programs, steady, worst").ratio().value() == doctest::Approx(2));
  CHECK(!rowCalled(results, "2 programs, steady, worst").met().value());
  CHECK(!rowCalled(results, "2 programs, whole process, geometric mean").met().value());
}

TEST_CASE("for concurrent programs only the total time counts") {
  Results results;
  Case both{"together/2", {"x"}, "", "2 programs at once"};
  both.copies = 2;
  both.ownFigures = false;
  Run run = runWith({{"steady", "us", 1}}, "same");
  run.reports.push_back(run.reports.front());
  results.add(both, Side::virtualized, run);
  REQUIRE(results.rows.size() == 1);
  CHECK(results.rows[0].name == "2 programs at once");
  CHECK(results.rows[0].virtualized == std::vector<double>{1000});
}

TEST_CASE("a side with a different result is refused, and so is a copy") {
  Results results;
  results.add(programCase("a"), Side::native, runWith({}, "1"));
  results.add(programCase("b"), Side::native, runWith({}, "2"));
  results.add(programCase("a"), Side::virtualized, runWith({}, "1"));
  CHECK(refusal([&] { results.add(programCase("a"), Side::virtualized, runWith({}, "2")); }) ==
        "programs/a: this virtual run had another result than the runs before it (digest 2, before 1): its times "
        "cannot be compared");
}

TEST_CASE("a session's memory is what the program uses more than the native one before its first call") {
  Results results;
  Case start{"calls/start", {"calls"}};
  auto run = [](double before, double after) {
    return runWith(
        {{"resident before the first call", "KiB", before}, {"resident after 1,000 launches", "KiB", after}});
  };
  results.add(start, Side::virtualized, run(5000, 3000 + 32 * 1024));
  results.conclude();
  CHECK(results.rows.size() == 2);
  results.add(start, Side::native, run(3000, 200000));
  results.conclude();
  CHECK(rowCalled(results, "memory of a program that copies nothing").met().value());
  results.rows.back().virtualized = {3001 + 32 * 1024};
  CHECK(!results.rows.back().met().value());
}

}  // namespace vgpu::bench
