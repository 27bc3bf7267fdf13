#include "checkpoint/process/work-folder.h"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "../scratch-directory.h"

namespace vgpu::process {
namespace {

namespace fs = std::filesystem;

size_t foldersIn(const std::string& base) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(base), fs::directory_iterator()));
}

}  // namespace

TEST_CASE("a folder for CRIU is removed by its owner, and a killed process's folder when the next one is made") {
  test::ScratchDirectory scratch;
  pid_t killed = fork();
  if (killed == 0) {
    WorkFolder left(scratch.path);
    std::ofstream(left.path() + "/log") << "text";
    kill(getpid(), SIGKILL);
  }
  REQUIRE(waitpid(killed, nullptr, 0) == killed);
  REQUIRE(foldersIn(scratch.path) == 1);
  fs::create_directory(scratch.path + "/another");
  std::optional<WorkFolder> first(std::in_place, scratch.path);
  CHECK(foldersIn(scratch.path) == 2);
  {
    WorkFolder second(scratch.path);
    CHECK(second.path() != first->path());
    CHECK(fs::exists(first->path()));
    CHECK(foldersIn(scratch.path) == 3);
  }
  first.reset();
  CHECK(foldersIn(scratch.path) == 1);
  CHECK(fs::exists(scratch.path + "/another"));
}

}  // namespace vgpu::process
