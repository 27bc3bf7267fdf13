#include "tools/vgpuctl/progress-line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tools/common/printable.h"

namespace vgpu::ctl {

bool wantsProgress() {
  const char* wish = std::getenv("VGPU_PROGRESS");
  if (wish != nullptr) return std::string_view(wish) == "1";
  return isatty(STDERR_FILENO) == 1;
}

kj::Promise<void> ProgressLine::report(ReportContext context) {
  if (!shown) return kj::READY_NOW;
  auto params = context.getParams();
  std::string amount;
  if (params.getTotalBytes() > 0) {
    amount = fmt::format(" {} of {}", humanBytes(params.getDoneBytes()), humanBytes(params.getTotalBytes()));
  }
  fmt::print(stderr, "\r\033[Kvgpuctl: {}: {}{}", operation, printable(params.getPhase().cStr()), amount);
  std::fflush(stderr);
  written = true;
  return kj::READY_NOW;
}

ProgressLine::~ProgressLine() noexcept(false) {
  if (written) fmt::print(stderr, "\r\033[K");
}

std::string humanBytes(uint64_t bytes) {
  static constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace vgpu::ctl
