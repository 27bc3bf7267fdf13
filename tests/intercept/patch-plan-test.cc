// Which functions of a file may be patched, and which may not.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <string>

#include "intercept/patch/plan.h"
#include "intercept/patch/write.h"
#include "vgpu/image/elf-file.h"

using namespace vgpu::runtime;
using vgpu::image::ElfFile;

namespace {

void replacement() {}
void other() {}
const Export table[] = {{"__cudaRegisterFatBinary", &replacement}, {"cudaFree", &other}, {"cudaMalloc", &replacement}};
const Export table12[] = {
    {"__cudaRegisterFatBinary", &replacement}, {"cudaGetDeviceProperties_v2", &other}, {"cudaMalloc", &other}};

Plan planOf(const std::string& name) {
  std::string path = VGPU_TEST_PROGRAMS "/" + name;
  ElfFile file(path.c_str());
  REQUIRE(file.valid());
  return planFor(file, path, table, table12);
}

int notEmpty(int n) { return n * 7 + 3; }

}  // namespace

TEST_CASE("every function of a static runtime that vgpu replaces is found, in the order of the addresses") {
  Plan plan = planOf("sample");
  REQUIRE(plan.verdict == Plan::Verdict::patch);
  CHECK(plan.jumps.size() == std::size(table));
  CHECK(std::ranges::is_sorted(plan.jumps, {}, &Jump::address));
}

TEST_CASE("a program on the shared runtime has nothing to patch") {
  CHECK(planOf("sample-shared").verdict == Plan::Verdict::leave);
  CHECK(planOf("sample-shared-stripped").verdict == Plan::Verdict::leave);
}

TEST_CASE("a program without device code is recognized by its runtime, not by the sections that nvcc adds") {
  CHECK(planOf("host-only").verdict == Plan::Verdict::patch);
  CHECK(planOf("host-only-stripped").verdict == Plan::Verdict::patch);
  CHECK(planOf("host-only-shared").verdict == Plan::Verdict::leave);
  CHECK(planOf("host-only-shared-stripped").verdict == Plan::Verdict::leave);
}

TEST_CASE("a stripped program gets the same jumps as with its symbols") {
  for (std::string name : {"sample", "host-only"}) {
    const Plan plan = planOf(name), stripped = planOf(name + "-stripped");
    REQUIRE(stripped.verdict == Plan::Verdict::patch);
    CHECK(std::ranges::equal(plan.jumps, stripped.jumps,
                             [](const Jump& a, const Jump& b) { return a.to == b.to && a.address == b.address; }));
  }
}

TEST_CASE("a stripped program whose functions are not found is refused, with advice") {
  const Plan plan = planOf("sample-no-unwind-stripped");
  CHECK(plan.verdict == Plan::Verdict::refuse);
  CHECK(plan.reason.find("does not find the runtime's functions") != std::string::npos);
  CHECK(plan.reason.find("nvcc -cudart shared") != std::string::npos);
}

TEST_CASE("an object with a function that has no room for a jump is refused by that function's name") {
  Plan plan = planOf("no-room.so");
  CHECK(plan.verdict == Plan::Verdict::refuse);
  CHECK(plan.reason.find("no room at __cudaRegisterFatBinary") != std::string::npos);
  CHECK(plan.jumps.empty());
}

TEST_CASE("short functions with room around them are patched") {
  CHECK(planOf("short.so").verdict == Plan::Verdict::patch);
}

TEST_CASE("an object that forwards the runtime's functions to a runtime that it opens is not patched") {
  CHECK(planOf("forwards.so").verdict == Plan::Verdict::leave);
}

TEST_CASE("an object in which two functions share their code is refused") {
  Plan plan = planOf("shared-code.so");
  CHECK(plan.verdict == Plan::Verdict::refuse);
  CHECK(plan.reason.find("share their code") != std::string::npos);
}

TEST_CASE("an object with a runtime older than CUDA 12 is refused with that reason") {
  Plan plan = planOf("older.so");
  CHECK(plan.verdict == Plan::Verdict::refuse);
  CHECK(plan.reason.find("older than 12") != std::string::npos);
}

TEST_CASE("a runtime of CUDA 12 gets the functions of CUDA 12, including names that only CUDA 12 has") {
  Plan plan = planOf("of12.so");
  REQUIRE(plan.verdict == Plan::Verdict::patch);
  REQUIRE(plan.jumps.size() == std::size(table12));
  for (auto& jump : plan.jumps) CHECK(std::ranges::any_of(table12, [&](const Export& each) { return &each == jump.to; }));
}

TEST_CASE("a file that is not ELF is not valid") {
  CHECK_FALSE(ElfFile("/proc/self/cmdline").valid());
  CHECK_FALSE(ElfFile("/").valid());
  CHECK_FALSE(ElfFile("/nowhere").valid());
  CHECK_FALSE(ElfFile(__FILE__).valid());
}

TEST_CASE("only a function that does nothing is replaced as the linker's hook") {
  int (*function)(int) = &notEmpty;
  uint64_t address = std::bit_cast<uint64_t>(function);
  CHECK(replaceEmptyFunction(address, &replacement).find("not the empty function") != std::string::npos);
  CHECK(function(2) == 17);
}
