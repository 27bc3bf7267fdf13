// How a progress line shows a rate.
#include "tools/vgpuctl/progress-line.h"

#include <doctest/doctest.h>

#include "vgpu/base/sizes.h"

using namespace vgpu;
using namespace vgpu::ctl;

TEST_CASE("a rate is shown with the remaining time") {
  CHECK(rateOf(2 * GiB, 8 * GiB, 2) == ", 1.0 GiB a second, 6 s left");
  CHECK(rateOf(512, 1024, 4) == ", 128 bytes a second, 4 s left");
}

TEST_CASE("no rate is shown before one has been measured") {
  CHECK(rateOf(0, 8 * GiB, 2) == "");
  CHECK(rateOf(1 * GiB, 8 * GiB, 0.01) == "");
}

TEST_CASE(
    "the remaining time is shown after one second, unless nothing remains or the total is unknown") {
  CHECK(rateOf(1 * GiB, 8 * GiB, 0.5) == ", 2.0 GiB a second");
  CHECK(rateOf(8 * GiB, 8 * GiB, 4) == ", 2.0 GiB a second");
  CHECK(rateOf(8 * GiB, 0, 4) == ", 2.0 GiB a second");
}

TEST_CASE("bytes are shown in the largest unit of which there is at least one") {
  CHECK(humanBytes(0) == "0 bytes");
  CHECK(humanBytes(1023) == "1023 bytes");
  CHECK(humanBytes(1 * KiB) == "1.0 KiB");
  CHECK(humanBytes(3 * GiB / 2) == "1.5 GiB");
  CHECK(humanBytes(5000 * TiB) == "5000.0 TiB");
}
