// When launches are folded into graphs: what `vgpud --fold` and VGPU_FOLD say (docs/folding.md).
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace vgpu {

enum class FoldMode : uint32_t {
  UNSAID = 0,  // in the segment: as the daemon says
  OFF = 1,
  AUTO = 2,    // where a run waits in the ring already
  ALWAYS = 3,  // runs of two, and the worker waits a moment for the second: for tests
};

// The names that people use; nothing for another name.
constexpr std::optional<FoldMode> foldModeOf(std::string_view name) {
  if (name == "off") return FoldMode::OFF;
  if (name == "auto") return FoldMode::AUTO;
  if (name == "always") return FoldMode::ALWAYS;
  return std::nullopt;
}

}  // namespace vgpu
