#include "tools/vgpuctl/progress-line.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
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
  uint64_t done = params.getDoneBytes(), total = params.getTotalBytes();
  auto now = std::chrono::steady_clock::now();
  if (phase != params.getPhase().cStr() || done < doneBefore) {
    phase = params.getPhase().cStr();
    since = now;
    doneBefore = done;
  }
  if (total > 0) {
    double seconds = std::chrono::duration<double>(now - since).count();
    std::string rate = rateOf(done - doneBefore, total - doneBefore, seconds);
    amount = fmt::format(" {} of {}{}", humanBytes(done), humanBytes(total), rate);
  }
  fmt::print(stderr, "\r\033[Kvgpuctl: {}: {}{}", operation, printable(params.getPhase().cStr()), amount);
  std::fflush(stderr);
  written = true;
  return kj::READY_NOW;
}

std::string rateOf(uint64_t doneBytes, uint64_t totalBytes, double seconds) {
  if (doneBytes == 0 || seconds < 0.05) return "";
  double rate = static_cast<double>(doneBytes) / seconds;
  std::string left;
  if (totalBytes > doneBytes && seconds > 1)
    left = fmt::format(", {:.0f} s left", static_cast<double>(totalBytes - doneBytes) / rate);
  return fmt::format(", {} a second{}", humanBytes(static_cast<uint64_t>(rate)), left);
}

ProgressLine::~ProgressLine() noexcept(false) {
  if (written) fmt::print(stderr, "\r\033[K");
}

DoneLine::DoneLine(std::string operation, uint64_t all) : operation(std::move(operation)), all(all), shown(wantsProgress()) {}

DoneLine::~DoneLine() {
  if (shown) fmt::print(stderr, "\r\033[K");
}

void DoneLine::add(uint64_t bytes) {
  done += bytes;
  auto now = Clock::now();
  if (!shown || now < next) return;
  next = now + std::chrono::milliseconds(100);
  std::string of = all == 0 ? "" : fmt::format(" of {}", humanBytes(all));
  double seconds = std::chrono::duration<double>(now - start).count();
  fmt::print(stderr, "\r\033[Kvgpuctl: {}: {}{}{}", operation, humanBytes(done), of, rateOf(done, all, seconds));
  std::fflush(stderr);
}

std::string humanBytes(uint64_t bytes) {
  static constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  for (; value >= 1024 && unit + 1 < std::size(units); ++unit) value /= 1024;
  return unit == 0 ? fmt::format("{} bytes", bytes) : fmt::format("{:.1f} {}", value, units[unit]);
}

}  // namespace vgpu::ctl
