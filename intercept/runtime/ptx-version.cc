#include "intercept/runtime/ptx-version.h"

#include <cuda.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>

namespace vgpu::runtime {

void lowerPtxVersion(std::span<char> text) {
  constexpr std::string_view directive = ".version";
  constexpr int major = CUDA_VERSION / 1000 - 4, minor = CUDA_VERSION % 1000 / 10;  // PTX 9.0 came with CUDA 13.0
  const std::string_view all(text.data(), text.size());
  const size_t at = all.find(directive);
  if (at == all.npos) return;
  const size_t begin = std::min(all.find_first_not_of(" \t", at + directive.size()), all.size());
  const size_t end = std::min(all.find_first_not_of("0123456789.", begin), all.size());
  const std::string_view number = all.substr(begin, end - begin);
  int textMajor = 0, textMinor = 0;
  const size_t point = std::min(number.find('.'), number.size());
  std::from_chars(number.data(), number.data() + point, textMajor);
  if (point < number.size()) std::from_chars(number.data() + point + 1, number.data() + number.size(), textMinor);
  const std::string lower = std::to_string(major) + "." + std::to_string(minor);
  if (textMajor < major || (textMajor == major && textMinor <= minor) || lower.size() > number.size()) return;
  std::fill(std::ranges::copy(lower, text.begin() + static_cast<ptrdiff_t>(begin)).out, text.begin() + static_cast<ptrdiff_t>(end), ' ');
}

}  // namespace vgpu::runtime
