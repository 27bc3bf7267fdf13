// Pieces of a table's text.
#pragma once

#include <string>
#include <vector>

#include "table.h"

namespace vgpu::generator {

std::string trimmed(const std::string& text);
// Pieces between separators that are in no parentheses.
std::vector<std::string> split(const std::string& text, char separator);
Clause words(const std::string& text);
// What is between the parenthesis at `open` and the one that closes it. Throws kj::Exception if none does.
std::string parenthesised(const std::string& text, size_t open);
// `const char * name`.
Parameter readParameter(const std::string& text);

}  // namespace vgpu::generator
