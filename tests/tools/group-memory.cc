// Memory that control groups leave available, read from folders laid out like the system's.
#include "tools/vgpud/group-memory.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "../files.h"

using namespace vgpu;
using namespace vgpu::daemon;

namespace {

struct Groups {
  // Makes a group of version 2 with `used` bytes, of which `filePages` are page cache.
  void make(const std::string& group, const std::string& limit, uint64_t used, uint64_t filePages) {
    std::string folder = scratch.path + "/root/" + group;
    std::filesystem::create_directories(folder);
    test::writeFile(folder + "/memory.max", limit + "\n");
    test::writeFile(folder + "/memory.current", std::to_string(used) + "\n");
    test::writeFile(folder + "/memory.stat", "anon 7\ninactive_file " + std::to_string(filePages) + "\nactive_file 0\n");
  }
  std::optional<uint64_t> left(const std::string& membership) {
    test::writeFile(scratch.path + "/cgroup", membership);
    return groupMemory(scratch.path + "/cgroup", scratch.path + "/root");
  }
  test::ScratchDirectory scratch;
};

}  // namespace

TEST_CASE("a process may use what the tightest of its control groups leaves") {
  Groups groups;
  groups.make("job", "1000", 400, 0);
  groups.make("job/step", "900", 100, 0);
  CHECK(groups.left("0::/job/step\n") == 600);
  groups.make("job", "1000", 100, 0);
  CHECK(groups.left("0::/job/step\n") == 800);
  groups.make("job", "max", 100, 0);
  CHECK(groups.left("0::/job\n") == std::nullopt);
}

TEST_CASE("page cache in a control group counts as available") {
  Groups groups;
  groups.make("job", "1000", 900, 500);
  CHECK(groups.left("0::/job\n") == 600);
}

TEST_CASE("a group that is over its limit leaves nothing") {
  Groups groups;
  groups.make("job", "1000", 1200, 0);
  CHECK(groups.left("0::/job\n") == 0);
}

TEST_CASE("the limit of a container is found although its group has another name outside") {
  Groups groups;
  groups.make("", "1000", 300, 0);
  CHECK(groups.left("0::/../elsewhere\n") == 700);
}

TEST_CASE("a limit of version 1 of control groups counts") {
  Groups groups;
  std::string folder = groups.scratch.path + "/root/memory/job";
  std::filesystem::create_directories(folder);
  test::writeFile(folder + "/memory.limit_in_bytes", "1000\n");
  test::writeFile(folder + "/memory.usage_in_bytes", "900\n");
  test::writeFile(folder + "/memory.stat", "inactive_file 1\ntotal_inactive_file 100\ntotal_active_file 100\n");
  CHECK(groups.left("5:cpu,cpuacct:/job\n4:memory:/job\n0::/job\n") == 300);
  test::writeFile(folder + "/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(groups.left("4:memory:/job\n") == std::nullopt);
}
