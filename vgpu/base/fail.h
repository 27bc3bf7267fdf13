// Our own failures, with a message for the user.
#pragma once

#include <string>

namespace vgpu {

// Throws a kj::Exception of type FAILED with `message` alone: what was asked, what was found, what to do.
[[noreturn]] void fail(const std::string& message);

}  // namespace vgpu
