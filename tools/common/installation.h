// Where the rest of this installation is. Installed and in the build tree alike, `bin` and `lib/vgpu` are neighbours,
// and whatever starts a part of vgpu finds it from its own executable's place.
#pragma once

#include <string>

namespace vgpu {

// Absolute path of the running executable.
std::string ownExecutable();

// Path of lib/vgpu/NAME. Throws kj::Exception if it is not there: the installation is incomplete.
std::string libraryFile(const std::string& name);

// Path of bin/NAME, likewise.
std::string binaryFile(const std::string& name);

inline constexpr const char* productVersion = VGPU_VERSION;

}  // namespace vgpu
