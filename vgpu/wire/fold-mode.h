// When launches are folded into graphs: the values of `vgpud --fold` and VGPU_FOLD (docs/folding.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vgpu {

enum class FoldMode : uint32_t {
  UNSAID = 0,  // in the segment: use the daemon's setting
  OFF = 1,
  AUTO = 2,    // if a run of launches already waits in the ring
  ALWAYS = 3,  // every run of two or more; the worker waits a moment for the second launch: for tests
};

// The mode of a name in the options; nothing for an unknown name.
constexpr std::optional<FoldMode> foldModeOf(std::string_view name) {
  if (name == "off") return FoldMode::OFF;
  if (name == "auto") return FoldMode::AUTO;
  if (name == "always") return FoldMode::ALWAYS;
  return std::nullopt;
}

}  // namespace vgpu
