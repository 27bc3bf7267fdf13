// Environment variables of a program that affect a library's results: natively the library reads them in the program's process. The worker
// gets them with each handle that is made, and with its recipe, so that every later worker has them too.
//
// They are sent as a list of bytes: each variable that is set as NAME=VALUE with a terminating zero byte, and a final zero byte.
#pragma once

#include <span>
#include <string>

namespace vgpu::api {

// The list of this process's variables, without values that are longer than any that a library accepts.
std::string libraryVariables();

// Sets this process's variables to those of a list: variables of the known names that the list lacks become unset, and unknown entries are
// ignored. An empty list has no effect. The list is not trusted. Other threads may read the environment meanwhile, but not change it.
void useLibraryVariables(std::span<const unsigned char> list);

}  // namespace vgpu::api
