#include "tools/common/config-folder.h"

#include <limits.h>
#include <unistd.h>

#include <cstdlib>

#include "vgpu/base/fail.h"

namespace vgpu {

std::string configFolder() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  auto isAbsolute = [](const char* path) { return path != nullptr && *path == '/'; };
  if (isAbsolute(config)) return std::string(config) + "/vgpu";
  if (!isAbsolute(home)) fail("neither HOME nor XDG_CONFIG_HOME says where your settings are: set one to an absolute path");
  return std::string(home) + "/.config/vgpu";
}

std::string ownHostName() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof name - 1) != 0 || *name == 0) return "localhost";
  return name;
}

}  // namespace vgpu
