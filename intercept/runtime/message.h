// Messages for the user. They work before, during and after the lifetime of the C library's streams.
#pragma once
#include <initializer_list>
#include <string_view>

namespace vgpu::runtime {

/// Writes "vgpu: ", the pieces and a newline to standard error in one write, so that lines of several threads and
/// processes do not mix. Any thread, at any time, constructors and atexit handlers included. Keeps errno.
void say(std::initializer_list<std::string_view> pieces);

}  // namespace vgpu::runtime
