#include "tools/vgpud/visible-devices.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <optional>

namespace vgpu::daemon {

namespace {

std::vector<std::string_view> parts(std::string_view text) {
  std::vector<std::string_view> found;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    found.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return found;
}

// As the driver parses it: decimal, up to the first non-digit, truncated to 32 bits. Measured on two H100 (580).
std::optional<uint32_t> numberIn(std::string_view part) {
  const std::string text(part);
  char* end = nullptr;
  const long long number = std::strtoll(text.c_str(), &end, 10);
  return end == text.c_str() ? std::nullopt : std::optional(static_cast<uint32_t>(number));
}

// The numbers of the node's devices in the daemon's environment.
std::vector<uint32_t> numbersOf(size_t count, const char* own) {
  std::vector<uint32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0u);
  if (own == nullptr) return numbers;
  const auto said = parts(own);
  for (size_t device = 0; device < count && device < said.size(); ++device) {
    auto number = numberIn(said[device]);
    if (!number) break;  // a UUID: numbers of further devices are then unknown
    numbers[device] = *number;
  }
  return numbers;
}

bool isUuid(std::string_view part) { return part.starts_with("GPU-"); }

std::optional<uint32_t> find(std::string_view part, const std::vector<DeviceInfo>& devices, const std::vector<uint32_t>& numbers) {
  auto hasUuid = [&](const DeviceInfo& device) { return device.uuid.starts_with(part); };
  if (isUuid(part)) {
    if (std::ranges::count_if(devices, hasUuid) != 1) return std::nullopt;
    return std::ranges::find_if(devices, hasUuid)->ordinal;
  }
  auto number = numberIn(part);
  auto found = number ? std::ranges::find(numbers, *number) : numbers.end();
  if (found == numbers.end()) return std::nullopt;
  return devices[static_cast<size_t>(found - numbers.begin())].ordinal;
}

}  // namespace

VisibleDevices visibleDevices(std::string_view text, const std::vector<DeviceInfo>& devices, const char* own) {
  const std::vector<uint32_t> numbers = numbersOf(devices.size(), own);
  VisibleDevices visible;
  auto& ordinals = visible.ordinals;
  for (std::string_view part : parts(text)) {
    auto device = find(part, devices, numbers);
    if (!device || isUuid(part) != isUuid(text)) break;
    if (std::ranges::find(ordinals, *device) != ordinals.end())
      return {.refusal = fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" names a GPU twice, and CUDA then shows no GPU: name each once", text),
              .isInvalid = true};
    ordinals.push_back(*device);
  }
  if (ordinals.empty())
    visible.refusal = fmt::format("CUDA_VISIBLE_DEVICES=\"{}\" names none of this node's {} GPUs: use numbers {}, or UUIDs as `nvidia-smi "
                                  "-L` prints them", text,
                                  devices.size(), fmt::join(numbers, ","));
  if (std::ranges::equal(ordinals, devices, {}, {}, &DeviceInfo::ordinal)) ordinals.clear();
  return visible;
}

}  // namespace vgpu::daemon
