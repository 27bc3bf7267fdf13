// Checks whether the dynamic linker will load our libraries into a program. Otherwise the program would run without them, on a real GPU or
// on none, so it is refused before it starts.
#pragma once

#include <string>

namespace vgpu::ctl {

// The file that a shell would execute for `name`. Throws kj::Exception if there is none.
std::string findExecutable(const std::string& name);

// Throws kj::Exception saying why `path` cannot be run on a virtual GPU, and what can be done.
void requirePreloadable(const std::string& path);

}  // namespace vgpu::ctl
