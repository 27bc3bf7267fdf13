#include "tools/vgpuctl/arguments.h"

#include <algorithm>
#include <string_view>

namespace vgpu::ctl {
namespace {

// Options before the program whose value is the next word.
constexpr std::string_view withValue[] = {"--node", "--name"};

bool takesNext(const std::string& word) { return std::ranges::find(withValue, word) != std::end(withValue); }

}  // namespace

std::vector<std::string> markProgram(std::vector<std::string> arguments) {
  bool isRun = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") return arguments;
    if (takesNext(word)) {
      ++i;
    } else if (!word.starts_with("-")) {
      if (isRun) {
        arguments.insert(arguments.begin() + static_cast<std::ptrdiff_t>(i), "--");
        return arguments;
      }
      if (word != "run") return arguments;
      isRun = true;
    }
  }
  return arguments;
}

}  // namespace vgpu::ctl
