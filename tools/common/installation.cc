#include "tools/common/installation.h"

#include <filesystem>

#include "vgpu/base/fail.h"

namespace vgpu {
namespace {

// The executable lies in bin/ or in lib/vgpu/ of this root.
std::filesystem::path root() {
  std::filesystem::path folder = std::filesystem::path(ownExecutable()).parent_path();
  return folder.filename() == "vgpu" ? folder.parent_path().parent_path() : folder.parent_path();
}

std::string existing(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    fail("this installation is incomplete: there is no " + path.string() + ". Install vgpu again");
  }
  return path.string();
}

}  // namespace

std::string ownExecutable() {
  std::error_code error;
  auto path = std::filesystem::read_symlink("/proc/self/exe", error);
  if (error) fail("cannot read /proc/self/exe (is /proc mounted?): " + error.message());
  return path.string();
}

std::string libraryFile(const std::string& name) { return existing(root() / "lib" / "vgpu" / name); }

std::string binaryFile(const std::string& name) { return existing(root() / "bin" / name); }

}  // namespace vgpu
