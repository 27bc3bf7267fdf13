#include "tools/vgpuctl/known-machines.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/common/config-folder.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {

namespace {

std::optional<std::string> findList() {
  const char* named = std::getenv("VGPU_MACHINES");
  if (named != nullptr && *named != 0) return named;
  auto folder = findConfigFolder();
  if (!folder) return std::nullopt;
  return *folder + "/machines";
}

}  // namespace

std::optional<KnownMachine> findKnownMachine(const std::string& name) {
  const auto path = findList();
  std::error_code ignored;
  if (!path || !std::filesystem::exists(*path, ignored)) return std::nullopt;
  std::ifstream file(*path);
  if (!file) fail(*path + " cannot be read: " + std::strerror(errno));
  std::optional<KnownMachine> found;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    KnownMachine machine{.list = *path};
    std::string more;
    if (!(words >> machine.name) || machine.name != name) continue;
    const std::string place = *path + ", line " + std::to_string(number) + ": ";
    if (!(words >> machine.node >> machine.target >> machine.monitor) || (words >> machine.saves && words >> more))
      fail(place + "expected NAME NODE TARGET QMP [SAVES], found \"" + line + "\"");
    if (!machine.saves.empty() && !machine.saves.starts_with('/'))
      fail(place + "the folder for its sessions must be an absolute path, not \"" + machine.saves + "\"");
    if (machine.name.find('/') != std::string::npos) fail(place + "\"" + machine.name + "\" cannot be a machine's name");
    if (found) fail(place + "a machine named " + name + " is on an earlier line");
    found = std::move(machine);
  }
  return found;
}

}  // namespace vgpu::ctl
