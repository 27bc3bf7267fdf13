#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "tools/common/installation.h"
#include "tools/vgpuctl/commands.h"
#include "vgpu/base/fail.h"

namespace vgpu::ctl {

int manageKeys(const std::vector<std::string>& words) {
  const std::string relay = libraryFile("vgpu-relay");
  std::vector<std::string> arguments = {"vgpu-relay", "keys"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  std::vector<char*> list;
  for (std::string& argument : arguments) list.push_back(argument.data());
  list.push_back(nullptr);
  execv(relay.c_str(), list.data());
  fail("cannot start " + relay + ": " + std::strerror(errno));
}

}  // namespace vgpu::ctl
