// How much of a snapshot is written, as other processes see it.
#include "vgpu/snapshot/write-progress.h"

#include <doctest/doctest.h>

#include "../files.h"

using namespace vgpu::snapshot;
using namespace vgpu::test;

TEST_CASE("the latest report of a writer is found as long as it writes") {
  ScratchDirectory scratch;
  CHECK_FALSE(findWriteProgress(scratch.path));
  {
    WriteProgressFile file(scratch.path);
    CHECK_FALSE(findWriteProgress(scratch.path));
    file.report(123456789, 987654321);
    file.report(7, 20);
    auto found = findWriteProgress(scratch.path);
    REQUIRE(found);
    CHECK(found->doneBytes == 7);
    CHECK(found->allBytes == 20);
    CHECK(found->seconds >= 0);
  }
  CHECK_FALSE(findWriteProgress(scratch.path));
  CHECK(namesIn(scratch.path).empty());
}

TEST_CASE("the report of a killed writer is ignored, and the next writer replaces it") {
  ScratchDirectory scratch;
  writeFile(scratch.path + "/writing", "5 10 1.0");
  CHECK_FALSE(findWriteProgress(scratch.path));
  WriteProgressFile file(scratch.path);
  file.report(1, 2);
  auto found = findWriteProgress(scratch.path);
  REQUIRE(found);
  CHECK(found->doneBytes == 1);
}

TEST_CASE("a writer that cannot open the file still writes the snapshot") {
  ScratchDirectory scratch;
  WriteProgressFile file(scratch.path + "/missing");
  file.report(1, 2);
  CHECK_FALSE(findWriteProgress(scratch.path + "/missing"));
}
