#include "tools/vgpuctl/arguments.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string_view>

#include "vgpu/base/fail.h"

namespace vgpu::ctl {
namespace {

// Options before the program that take the next word as their value.
constexpr std::string_view withValue[] = {"--node", "--name", "--gpus"};

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

std::vector<uint32_t> parseDeviceMap(const std::string& text) {
  constexpr uint32_t mostDevices = 64;
  std::vector<uint32_t> devices;
  auto refuse = [&] { fail("--device-map takes PROGRAM'S GPU=NODE'S GPU, such as 0=1,1=0, not \"" + text + "\""); };
  auto number = [&](std::string_view word) {
    uint32_t value = 0;
    auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || value >= mostDevices) refuse();
    return value;
  };
  std::string pair;
  for (std::istringstream pairs(text); std::getline(pairs, pair, ',');) {
    size_t sign = pair.find('=');
    if (sign == pair.npos) refuse();
    uint32_t device = number(std::string_view(pair).substr(0, sign)), here = number(std::string_view(pair).substr(sign + 1));
    if (device >= devices.size()) devices.resize(device + 1, notMapped);
    if (devices[device] != notMapped) refuse();
    devices[device] = here;
  }
  if (!text.empty() && (devices.empty() || text.ends_with(','))) refuse();
  return devices;
}

}  // namespace vgpu::ctl
