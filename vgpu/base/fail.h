// Our own failures, as a person is to read them.
#pragma once

#include <string>

namespace vgpu {

// Throws a kj::Exception of type FAILED that says `message` and nothing else: what was asked, what was found, what to do.
[[noreturn]] void fail(const std::string& message);

}  // namespace vgpu
