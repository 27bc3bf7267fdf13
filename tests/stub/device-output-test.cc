#include "stub/worker/device-output.h"

#include <doctest/doctest.h>
#include <kj/io.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

namespace vgpu::stub {
namespace {

// Redirects standard output to a file.
struct Printed {
  kj::AutoCloseFd file{memfd_create("printed", MFD_CLOEXEC)};
  void write(const std::string& text) { REQUIRE(::write(file, text.data(), text.size()) == ssize_t(text.size())); }
  int64_t residentBytes() {
    struct stat status;
    REQUIRE(fstat(file, &status) == 0);
    return status.st_blocks * 512;
  }
};

TEST_CASE("the driver's output is collected once, and returned in parts of any size") {
  Printed printed;
  DeviceOutput output(printed.file);
  output.collect();
  CHECK(output.isEmpty());
  printed.write("one\n");
  output.collect();
  printed.write("two\n");
  output.collect();
  output.collect();
  CHECK(output.rest() == "one\ntwo\n");
  CHECK(output.take(5) == "one\nt");
  CHECK(output.rest() == "wo\n");
  printed.write("three\n");
  output.collect();
  CHECK(output.rest() == "wo\nthree\n");
  CHECK(output.take(1000) == "wo\nthree\n");
  CHECK(output.isEmpty());
}

TEST_CASE("output that a snapshot kept comes first") {
  Printed printed;
  DeviceOutput output(printed.file);
  output.load("before\n");
  printed.write("after\n");
  output.collect();
  CHECK(output.rest() == "before\nafter\n");
}

TEST_CASE("output that is never fetched takes bounded memory, and the latest is kept") {
  Printed printed;
  DeviceOutput output(printed.file);
  const std::string piece(8 << 20, 'x');
  for (int i = 0; i < 9; ++i) {
    printed.write(piece);
    output.collect();
    CHECK(printed.residentBytes() < 2 * 4096);
  }
  printed.write("the last");
  output.collect();
  CHECK(output.rest().size() == DeviceOutput::mostBytes);
  CHECK(output.rest().ends_with("xthe last"));
}

TEST_CASE("nothing is collected if standard output is not the worker's") {
  DeviceOutput output(-1);
  output.collect();
  CHECK(output.isEmpty());
}

}  // namespace
}  // namespace vgpu::stub
