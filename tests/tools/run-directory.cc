#include "tools/vgpud/run-directory.h"

#include <doctest/doctest.h>
#include <kj/exception.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "../scratch-directory.h"

namespace vgpu {
namespace {

namespace fs = std::filesystem;

pid_t endedProcess() {
  pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  return child;
}

}  // namespace

TEST_CASE("a run directory is made, private, and taken by one daemon at a time") {
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

TEST_CASE("a file where the run directory should be is refused") {
  test::ScratchDirectory folder("/tmp");
  std::ofstream(folder.path + "/file") << "x";
  CHECK_THROWS_AS(RunDirectory(folder.path + "/file"), kj::Exception);
}

TEST_CASE("what dead programs left is removed, what living ones use stays") {
  test::ScratchDirectory folder("/tmp");
  std::string living, dead;
  {
    RunDirectory directory(folder.path);
    living = directory.makeSession("living", getpid());
    dead = directory.makeSession("dead", endedProcess());
  }
  std::ofstream(folder.path + "/vgpud.sock") << "stale";
  RunDirectory directory(folder.path);
  CHECK(fs::exists(living));
  CHECK(!fs::exists(dead));
  CHECK(!fs::exists(directory.controlSocket()));
}

TEST_CASE("a program cannot have other directories removed than its session's") {
  test::ScratchDirectory folder("/tmp");
  RunDirectory directory(folder.path);
  std::string mine = directory.makeSession("mine", getpid()), other = directory.makeSession("other", getpid());
  std::string foreign = folder.path + "/sessions/foreign";
  fs::create_directory(foreign);
  std::ofstream(foreign + "/file") << "x";
  removeSessionState(other, "mine");
  removeSessionState(folder.path, "");
  removeSessionState(foreign, "foreign");
  removeSessionState(mine + "/../other", "mine");
  CHECK(fs::exists(other));
  CHECK(fs::exists(foreign + "/file"));
  removeSessionState(mine, "mine");
  CHECK(!fs::exists(mine));
}

}  // namespace vgpu
