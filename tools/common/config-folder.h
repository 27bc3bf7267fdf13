// A user's configuration folder for vgpu, and the name of this host.
#pragma once

#include <optional>
#include <string>

namespace vgpu {

// $XDG_CONFIG_HOME/vgpu, else ~/.config/vgpu. find: nothing if neither is known; configFolder() throws kj::Exception then.
std::optional<std::string> findConfigFolder();
std::string configFolder();

std::string ownHostName();

}  // namespace vgpu
