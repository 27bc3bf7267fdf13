// What a user has written down for vgpu, and what this host is called.
#pragma once

#include <string>

namespace vgpu {

// $XDG_CONFIG_HOME/vgpu, else ~/.config/vgpu. Throws kj::Exception if neither is known.
std::string configFolder();

std::string ownHostName();

}  // namespace vgpu
