#include "migrate/cut-over.h"

#include <fmt/format.h>

namespace vgpu::migrate {

bool CutOver::isDue(uint64_t bytes) {
  const uint64_t before = left;
  left = bytes;
  if (bytes == 0 || rounds == mostRounds) return true;
  if (rounds == 0) return false;
  return static_cast<double>(bytes) <= rate * downtime * shareOfCopying || bytes > before / 4 * 3;
}

void CutOver::noteRound(uint64_t bytes, double seconds) {
  ++rounds;
  rate = static_cast<double>(bytes) / seconds;
}

std::optional<double> CutOver::expectedSeconds() const {
  if (rate <= 0) return std::nullopt;
  return static_cast<double>(left) / rate;
}

std::string CutOver::phase() const {
  auto seconds = expectedSeconds();
  std::string held = seconds ? fmt::format(" (would be held for {:.3f} s)", *seconds) : "";
  return fmt::format("round {}{}", rounds + 1, held);
}

}  // namespace vgpu::migrate
