// Text as Cap'n Proto's messages take it.
#pragma once

#include <capnp/blob.h>

#include <string>

namespace vgpu {

// Valid as long as `text` is.
inline capnp::Text::Reader reader(const std::string& text) { return {text.c_str(), text.size()}; }

}  // namespace vgpu
