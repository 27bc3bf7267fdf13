#include "tools/vgpuctl/known-machines.h"

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tools/common/config-folder.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {

std::string knownMachinesFile() {
  const char* named = std::getenv("VGPU_MACHINES");
  return named != nullptr && *named != 0 ? named : configFolder() + "/machines";
}

std::optional<KnownMachine> findKnownMachine(const std::string& name) {
  const std::string path = knownMachinesFile();
  if (!std::filesystem::exists(path)) return std::nullopt;
  std::ifstream file(path);
  if (!file) fail(path + " cannot be read: " + std::strerror(errno));
  std::optional<KnownMachine> found;
  std::string line;
  for (size_t number = 1; std::getline(file, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    KnownMachine machine;
    std::string more;
    if (!(words >> machine.name)) continue;
    const std::string place = path + ", line " + std::to_string(number) + ": ";
    if (!(words >> machine.node >> machine.target >> machine.monitor) || words >> more)
      fail(place + "a machine is NAME NODE TARGET QMP, not \"" + line + "\"");
    if (machine.name.find('/') != std::string::npos) fail(place + "\"" + machine.name + "\" cannot name a machine");
    if (machine.name != name) continue;
    if (found) fail(place + "there is a machine " + name + " above");
    found = std::move(machine);
  }
  return found;
}

}  // namespace vgpu::ctl
