// The directory of a snapshot that is being written, while other processes take directories.
#include "vgpu/snapshot/snapshot-target.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <kj/io.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "../scratch-directory.h"

using namespace vgpu;
using namespace vgpu::snapshot;
using namespace vgpu::test;

TEST_CASE("a new directory is obtained although a collection removes empty directories that are not locked") {
  ScratchDirectory scratch;
  const std::string path = scratch.path + "/snapshot";
  std::atomic<bool> isOver{false};
  std::atomic<unsigned> removed{0};
  std::thread collection([&] {
    while (!isOver) {
      kj::AutoCloseFd held(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      bool has = held.get() >= 0 && flock(held, LOCK_EX | LOCK_NB) == 0 && isStill(held, path);
      if (has && rmdir(path.c_str()) == 0) ++removed;
      usleep(500);
    }
  });
  for (unsigned time = 0; time < 300 || (removed == 0 && time < 100'000); ++time) {
    CHECK_NOTHROW(SnapshotTarget{path});
    CHECK(!std::filesystem::exists(path));
  }
  isOver = true;
  collection.join();
  CHECK(removed > 0);
}
