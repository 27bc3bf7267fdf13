#include "tools/vgpud/group-memory.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>

namespace vgpu::daemon {
namespace {

namespace fs = std::filesystem;

// Documentation/admin-guide/cgroup-v2.rst and cgroup-v1/memory.rst of the kernel.
struct Version {
  const char *limit, *used, *droppable, *recentlyUsed;  // two files, and two rows of memory.stat
};
constexpr Version second{"memory.max", "memory.current", "inactive_file", "active_file"};
constexpr Version first{"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file"};
constexpr uint64_t noLimit = uint64_t{1} << 62;  // version 1 reports a larger number

std::optional<uint64_t> numberIn(const fs::path& file) {
  std::ifstream in(file);
  uint64_t number = 0;
  return in >> number ? std::optional(number) : std::nullopt;  // "max" means no limit
}

uint64_t filePages(const fs::path& group, const Version& version) {
  std::ifstream in(group / "memory.stat");
  uint64_t bytes = 0, value = 0;
  for (std::string name; in >> name >> value;)
    if (name == version.droppable || name == version.recentlyUsed) bytes += value;
  return bytes;
}

std::optional<uint64_t> leftIn(const fs::path& group, const Version& version) {
  auto limit = numberIn(group / version.limit), used = numberIn(group / version.used);
  if (!limit || !used || *limit >= noLimit) return std::nullopt;
  uint64_t held = *used - std::min(*used, filePages(group, version));
  return *limit - std::min(*limit, held);
}

// `group`: relative to `root`, as in the membership file. It may belong to another namespace, and be missing here.
std::optional<uint64_t> tightest(const fs::path& root, fs::path group, const Version& version) {
  std::optional<uint64_t> least;
  for (;; group = group.parent_path()) {
    if (auto left = leftIn(root / group, version)) least = std::min(*left, least.value_or(*left));
    if (group.empty()) return least;
  }
}

bool hasMemory(std::string_view controllers) {
  return ("," + std::string(controllers) + ",").find(",memory,") != std::string::npos;
}

}  // namespace

std::optional<uint64_t> groupMemory(const std::string& membership, const std::string& root) {
  std::optional<uint64_t> least;
  std::ifstream list(membership);
  for (std::string line; std::getline(list, line);) {  // each line is number:controllers:/path
    size_t begin = line.find(':'), end = line.find(':', begin + 1);
    if (begin == line.npos || end == line.npos) continue;
    std::string controllers = line.substr(begin + 1, end - begin - 1);
    fs::path group = fs::path(line.substr(end + 1)).relative_path();
    std::optional<uint64_t> left;
    if (controllers.empty())
      left = tightest(root, group, second);
    else if (hasMemory(controllers))
      left = tightest(fs::path(root) / "memory", group, first);
    if (left) least = std::min(*left, least.value_or(*left));
  }
  return least;
}

}  // namespace vgpu::daemon
