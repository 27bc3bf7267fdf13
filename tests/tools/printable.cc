#include "tools/common/printable.h"

#include <doctest/doctest.h>

namespace vgpu {

TEST_CASE("plain text is printed unchanged, in every script") {
  CHECK(printable("train-7 (run 2) \\ /usr/bin/a b") == "train-7 (run 2) \\ /usr/bin/a b");
  CHECK(printable("Zürich Ωμέγα 学習 🚂") == "Zürich Ωμέγα 学習 🚂");
  CHECK(printable("").empty());
}

TEST_CASE("control characters and line breaks are escaped") {
  CHECK(printable("a\nb\tc\rd") == "a\\nb\\tc\\x0dd");
  CHECK(printable("\033[2J\a\x7f") == "\\x1b[2J\\x07\\x7f");
  CHECK(printable(std::string_view("a\0b", 3)) == "a\\x00b");
  CHECK(printable("\u0085\u009b") == "\\xc2\\x85\\xc2\\x9b");
  CHECK(printable("\u2028\u202e\u2066") == "\\xe2\\x80\\xa8\\xe2\\x80\\xae\\xe2\\x81\\xa6");
}

TEST_CASE("invalid UTF-8 is escaped byte by byte") {
  CHECK(printable("\xff\xfe") == "\\xff\\xfe");
  CHECK(printable("\xc3") == "\\xc3");
  CHECK(printable("\xc0\xaf") == "\\xc0\\xaf");          // overlong
  CHECK(printable("\xed\xa0\x80") == "\\xed\\xa0\\x80");  // half a surrogate pair
  CHECK(printable("\xf4\x90\x80\x80") == "\\xf4\\x90\\x80\\x80");
  CHECK(printable("\xe2\x82x") == "\\xe2\\x82x");
}

}  // namespace vgpu
