// Strings as Cap'n Proto text.
#pragma once

#include <capnp/blob.h>

#include <string>

namespace vgpu {

// Valid as long as `text` lives.
inline capnp::Text::Reader reader(const std::string& text) { return {text.c_str(), text.size()}; }

}  // namespace vgpu
