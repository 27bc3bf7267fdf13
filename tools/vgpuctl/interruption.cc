#include "tools/vgpuctl/interruption.h"

#include <atomic>
#include <cstring>
#include <iterator>
#include <string>

#include "vgpu/base/fail.h"

namespace vgpu::ctl {

namespace {

constexpr int signals[] = {SIGINT, SIGTERM, SIGHUP};
std::atomic<int> arrived{0};

}  // namespace

Interruption::Interruption() {
  arrived = 0;
  struct sigaction action {};
  action.sa_handler = [](int signal) { arrived = signal; };  // without SA_RESTART, so that blocking calls return EINTR
  for (size_t i = 0; i < std::size(signals); ++i) {
    sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (size_t i = 0; i < std::size(signals); ++i) sigaction(signals[i], &before[i], nullptr);
}

void Interruption::check() const {
  if (arrived != 0) fail(std::string("interrupted by SIG") + sigabbrev_np(arrived) + "; what was written has been removed");
}

}  // namespace vgpu::ctl
