#include "tools/common/config-folder.h"

#include <limits.h>
#include <pwd.h>
#include <unistd.h>

#include <cstdlib>

#include "vgpu/base/fail.h"

namespace vgpu {

std::optional<std::string> findConfigFolder() {
  const char *config = std::getenv("XDG_CONFIG_HOME"), *home = std::getenv("HOME");
  auto isAbsolute = [](const char* path) { return path != nullptr && *path == '/'; };
  if (isAbsolute(config)) return std::string(config) + "/vgpu";
  if (!isAbsolute(home)) {  // a service may have neither variable
    const passwd* user = getpwuid(geteuid());
    home = user == nullptr ? nullptr : user->pw_dir;
  }
  if (!isAbsolute(home)) return std::nullopt;
  return std::string(home) + "/.config/vgpu";
}

std::string configFolder() {
  auto folder = findConfigFolder();
  if (!folder)
    fail("your settings folder is unknown: set HOME or XDG_CONFIG_HOME to an absolute path");
  return *folder;
}

std::string ownHostName() {
  char name[HOST_NAME_MAX + 1] = {};
  if (gethostname(name, sizeof name - 1) != 0 || *name == 0) return "localhost";
  return name;
}

}  // namespace vgpu
