#include "tools/common/snapshot-store.h"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "vgpu/base/fail.h"

namespace vgpu {

std::string snapshotStore() {
  auto absolute = [](const char* path) { return path != nullptr && *path == '/'; };
  const char *named = std::getenv("VGPU_STORE"), *data = std::getenv("XDG_DATA_HOME"), *home = std::getenv("HOME");
  if (named != nullptr && *named != 0) return std::filesystem::absolute(named).lexically_normal().string();
  if (absolute(data)) return std::string(data) + "/vgpu/store";
  if (geteuid() == 0) return "/var/lib/vgpu/store";
  if (!absolute(home)) fail("there is no store of snapshots: name one with VGPU_STORE, or a directory for this snapshot with --to");
  return std::string(home) + "/.local/share/vgpu/store";
}

}  // namespace vgpu
