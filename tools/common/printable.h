// Untrusted text (a program's name and path, its messages) made safe for a terminal or a log.
#pragma once

#include <string>
#include <string_view>

namespace vgpu {

// `text` with every byte that is not plain text written as
// , \t or \xNN: control characters (C0, DEL, C1), line and paragraph separators, characters that change the direction of writing, and
// invalid UTF-8. Other text is unchanged, including backslashes: the result is for people and is never parsed.
std::string printable(std::string_view text);

}  // namespace vgpu
