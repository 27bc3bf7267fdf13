// What a user has written down for vgpu, and what this host is called.
#pragma once

#include <optional>
#include <string>

namespace vgpu {

// $XDG_CONFIG_HOME/vgpu, else ~/.config/vgpu. Nothing if neither is known; getting it throws kj::Exception then.
std::optional<std::string> findConfigFolder();
std::string configFolder();

std::string ownHostName();

}  // namespace vgpu
