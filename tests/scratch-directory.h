// A temporary directory for a test, removed by the destructor.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace vgpu::test {

class ScratchDirectory {
 public:
  // Socket paths must be short: `/tmp`, whatever TMPDIR is.
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
