// Text of others (a program's name and path, its messages) as a terminal or a log may be given it.
#pragma once

#include <string>
#include <string_view>

namespace vgpu {

// `text` with every byte that is not plain text written as \n, \t or \xNN: control characters (C0, DEL, C1), line and
// paragraph separators, characters that change the direction of writing, and what is no UTF-8. Other text stays as it
// is, a backslash included: what is printed is for eyes and is not read back.
std::string printable(std::string_view text);

}  // namespace vgpu
