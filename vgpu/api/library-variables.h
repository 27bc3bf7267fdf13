// Variables of a program's environment that decide what a library computes: natively the library reads them in the program. The worker gets
// these few with each handle that is made, and with its recipe, so that another worker has them too.
//
// They are a list of bytes: each variable that is set as NAME=VALUE with a zero byte behind it, and another zero byte.
#pragma once

#include <span>
#include <string>

namespace vgpu::api {

// This process's, but for values that are longer than any which a library takes.
std::string libraryVariables();

// Makes those of a list this process's: others of these names are not set any more, and what else the list has is left out. An empty one is
// none, and changes nothing. The list is not trusted. Other threads may read the environment meanwhile, but not change it.
void useLibraryVariables(std::span<const unsigned char> list);

}  // namespace vgpu::api
