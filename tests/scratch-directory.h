// A directory of a test's own, gone with its owner.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace vgpu::test {

class ScratchDirectory {
 public:
  // Sockets need a short path: `/tmp`, wherever TMPDIR is.
  explicit ScratchDirectory(const std::string& under = std::filesystem::temp_directory_path()) {
    path = under + "/vgpu-test-XXXXXX";
    if (mkdtemp(path.data()) == nullptr) throw std::runtime_error("mkdtemp " + path);
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  std::string path;
};

}  // namespace vgpu::test
