// Where the processes of a virtual machine's sessions listen for the message that the machine goes on (docs/virtual-machines.md).
#pragma once

#include <cstdint>
#include <string>

namespace vgpu {

inline std::string attachFolderOf(const std::string& runDirectory, const std::string& guest) {
  return runDirectory + "/guests/" + guest;
}
inline std::string attachSocketOf(const std::string& runDirectory, const std::string& guest, uint64_t slot) {
  return attachFolderOf(runDirectory, guest) + "/" + std::to_string(slot);
}

}  // namespace vgpu
