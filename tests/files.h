// Helpers for tests that need files and file systems.
#pragma once

#include <sys/mount.h>

#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "objects/frames.h"

namespace vgpu::test {

inline std::string readFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void writeFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

inline std::set<std::string> namesIn(const std::string& directory) {
  std::set<std::string> names;
  for (auto& entry : std::filesystem::directory_iterator(directory)) names.insert(entry.path().filename().string());
  return names;
}

inline std::span<const std::byte> bytesOf(const std::string& text) { return std::as_bytes(std::span(text)); }

inline std::vector<std::byte> randomBytes(size_t size, unsigned seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

// A small file system for the test, if the process may mount one.
class SmallDisk {
 public:
  explicit SmallDisk(const char* options) {
    mounted = mount("vgpu-test", scratch.path.c_str(), "tmpfs", 0, options) == 0;
  }
  ~SmallDisk() {
    if (mounted) umount2(scratch.path.c_str(), MNT_DETACH);
  }
  void makeReadOnly() { mount(nullptr, scratch.path.c_str(), nullptr, MS_REMOUNT | MS_RDONLY, nullptr); }

  ScratchDirectory scratch;
  bool mounted;
};

}  // namespace vgpu::test
