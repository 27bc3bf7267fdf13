// The paths of this installation's other parts. In an installation and in the build tree alike, `bin` and `lib/vgpu` lie in one folder, and
// every program finds the other parts relative to its own executable.
#pragma once

#include <string>

namespace vgpu {

// Absolute path of the running executable.
std::string ownExecutable();

// Path of lib/vgpu/NAME. Throws kj::Exception if it does not exist: the installation is incomplete.
std::string libraryFile(const std::string& name);

// Path of bin/NAME, likewise.
std::string binaryFile(const std::string& name);

inline constexpr const char* productVersion = VGPU_VERSION;

}  // namespace vgpu
