#include "tools/vgpud/run-directory.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../scratch-directory.h"

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;

}  // namespace

TEST_CASE("a run directory is created, private, and locked by one daemon at a time") {
  test::ScratchDirectory folder("/tmp");
  std::string path = folder.path + "/deep/er";
  {
    RunDirectory first(path + "/");
    struct stat status;
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
    CHECK(first.path() == path);
    std::string reason;
    auto caught = kj::runCatchingExceptions([&] { RunDirectory second(path); });
    KJ_IF_MAYBE (exception, caught) {
      reason = exception->getDescription().cStr();
    }
    CHECK(reason.find("another vgpud (pid " + std::to_string(getpid()) + ")") != std::string::npos);
  }
  RunDirectory again(path);
}

TEST_CASE("a file at the path of the run directory is refused") {
  test::ScratchDirectory folder("/tmp");
  std::ofstream(folder.path + "/file") << "x";
  CHECK_THROWS_AS(RunDirectory(folder.path + "/file"), kj::Exception);
}

TEST_CASE("sockets of a dead daemon are removed") {
  test::ScratchDirectory folder("/tmp");
  std::ofstream(folder.path + "/vgpud.sock") << "stale";
  RunDirectory directory(folder.path);
  CHECK(!fs::exists(directory.controlSocket()));
}

TEST_CASE("a run directory that others can write is refused") {
  test::ScratchDirectory folder("/tmp");
  fs::permissions(folder.path, fs::perms(0770));
  CHECK_THROWS_AS(RunDirectory(folder.path), kj::Exception);
  fs::permissions(folder.path, fs::perms(0700));
  RunDirectory directory(folder.path);
}

}  // namespace vgpu::daemon
