// printf's formatting for device code: a format string and a packed argument buffer.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace vgpu::emulator {

class FormatArguments {
 public:
  virtual ~FormatArguments() = default;
  // The next argument of `bytes` (4 or 8), which is aligned to its size.
  virtual uint64_t next(uint32_t bytes) = 0;
  virtual std::string text(uint64_t address) = 0;
};

// Appends to `output`; returns how many arguments were used, as CUDA's printf does.
int format(std::string_view format, FormatArguments&, std::string& output);

}  // namespace vgpu::emulator
