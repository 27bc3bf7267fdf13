// Replacement of the runtime inside a program by vgpu's: whole programs, as nvcc makes them.
#include <doctest/doctest.h>

#include <elf.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "runtime-run.h"

namespace {

const std::string folder = VGPU_TEST_PROGRAMS "/";
const std::string programs[] = {folder + "sample", folder + "sample-shared"};

// A copy of the sample without section headers, as sstrip leaves a program.
std::string withoutSectionHeaders(const std::string& path) {
  std::string copy = path + "-bare";
  std::filesystem::copy_file(path, copy, std::filesystem::copy_options::overwrite_existing);
  std::fstream file(copy, std::ios::in | std::ios::out | std::ios::binary);
  Elf64_Ehdr header;
  file.read(static_cast<char*>(static_cast<void*>(&header)), sizeof header);
  header.e_shoff = 0;
  header.e_shnum = header.e_shstrndx = 0;
  file.seekp(0);
  file.write(static_cast<char*>(static_cast<void*>(&header)), sizeof header);
  return copy;
}

void checkRuns(const std::string& program) {
  CAPTURE(program);
  Outcome outcome = runPreloaded({program});
  CHECK(outcome.status == 0);
  CHECK(outcome.errors == "");
  CHECK(outcome.printed("launch cudaSuccess"));
  CHECK(outcome.called("cuMemAlloc 64"));
  CHECK(outcome.called("cuLaunchKernel 2 32 16 0"));
  CHECK(outcome.countOf("cuLibraryLoadData") == 1);
}

}  // namespace

TEST_CASE("a program runs on vgpu's runtime whether NVIDIA's is linked into it or not") {
  for (const std::string& program : programs) checkRuns(program);
}

TEST_CASE("a program that makes no CUDA call makes no driver call") {
  for (const std::string& program : programs) CHECK(runPreloaded({program, "nothing"}).calls.empty());
}

TEST_CASE("no page stays writable and executable after patching") {
  for (const std::string& program : programs) {
    Outcome outcome = runPreloaded({program, "maps"});
    CHECK(outcome.output == "");
    CHECK(outcome.status == 0);
  }
}

TEST_CASE("a program started through the dynamic linker is patched too") {
  Outcome outcome = runPreloaded({VGPU_TEST_LINKER, programs[0]});
  CHECK(outcome.status == 0);
  CHECK(outcome.called("cuLaunchKernel"));
}

TEST_CASE("a position-dependent program is patched too") {
  Outcome outcome = runPreloaded({folder + "sample-no-pie"});
  CHECK(outcome.status == 0);
  CHECK(outcome.called("cuLaunchKernel"));
}

TEST_CASE("vgpu's runtime does not call back into a program that exports the runtime linked into it") {
  Outcome outcome = runPreloaded({folder + "sample-exporting"});
  CHECK(outcome.status == 0);
  CHECK(outcome.called("cuLaunchKernel"));
}

TEST_CASE("a library opened later is patched before its constructors run, each time it is opened") {
  for (std::string plugin : {"plugin.so", "plugin-shared.so", "plugin-stripped.so"}) {
    CAPTURE(plugin);
    Outcome outcome = runPreloaded({folder + "plugin-host", folder + plugin});
    CHECK(outcome.status == 0);
    CHECK(outcome.errors == "");
    CHECK(outcome.output == "constructor cudaSuccess\nwork 0\nconstructor cudaSuccess\nwork 0\n");
    CHECK(outcome.countOf("cuInit") == 1);
    CHECK(outcome.countOf("cuLibraryLoadData") == 2);
    CHECK(outcome.countOf("cuLibraryUnload") == 2);
  }
}

TEST_CASE("a stripped program runs on vgpu's runtime, also without section headers") {
  for (const std::string& program : {folder + "sample-stripped", withoutSectionHeaders(folder + "sample-stripped")}) checkRuns(program);
}

TEST_CASE("a stripped program whose runtime is not found is refused before main, with advice") {
  const std::string stripped = folder + "sample-no-unwind-stripped";
  for (const std::string& program : {stripped, withoutSectionHeaders(stripped)}) {
    CAPTURE(program);
    Outcome outcome = runPreloaded({program});
    CHECK(outcome.status == 127);
    CHECK(outcome.output == "");
    CHECK(outcome.errors.find(program) != std::string::npos);
    CHECK(outcome.errors.find("nvcc -cudart shared") != std::string::npos);
    CHECK(outcome.calls.empty());
  }
}

TEST_CASE("a stripped program that uses the shared runtime runs") {
  Outcome outcome = runPreloaded({folder + "sample-shared-stripped"});
  CHECK(outcome.status == 0);
  CHECK(outcome.called("cuLaunchKernel"));
}

TEST_CASE("a library that keeps its own runtime is loaded without a message, at start and later, and the program goes on") {
  for (std::string plugin : {"plugin-no-unwind-stripped.so", "older.so", "no-room.so"}) {
    CAPTURE(plugin);
    Outcome later = runPreloaded({folder + "plugin-host", folder + plugin});
    CHECK(later.errors.find("vgpu: ") == std::string::npos);
    CHECK(later.status != 127);
    Outcome atStart = runPreloaded({"/bin/sh", "-c", "echo fine"}, {"LD_PRELOAD=" VGPU_TEST_CUDART ":" + folder + plugin});
    CHECK(atStart.status == 0);
    CHECK(atStart.errors == "");
    CHECK(atStart.output.ends_with("fine\n"));
  }
}

TEST_CASE("a program without CUDA is left alone") {
  Outcome outcome = runPreloaded({"/bin/sh", "-c", "echo fine"});
  CHECK(outcome.status == 0);
  CHECK(outcome.output == "fine\n");
  CHECK(outcome.errors == "");
  CHECK(outcome.calls.empty());
}
