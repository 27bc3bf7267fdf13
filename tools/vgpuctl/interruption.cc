#include "tools/vgpuctl/interruption.h"

#include <atomic>
#include <string>

#include "vgpu/base/fail.h"

namespace vgpu::ctl {

namespace {

constexpr int signals[] = {SIGINT, SIGTERM};
std::atomic<int> arrived{0};

}  // namespace

Interruption::Interruption() {
  arrived = 0;
  struct sigaction action {};
  action.sa_handler = [](int signal) { arrived = signal; };  // without SA_RESTART
  for (int i = 0; i < 2; ++i) {
    sigaction(signals[i], nullptr, &before[i]);
    if (before[i].sa_handler != SIG_IGN) sigaction(signals[i], &action, nullptr);
  }
}

Interruption::~Interruption() {
  for (int i = 0; i < 2; ++i) sigaction(signals[i], &before[i], nullptr);
}

void Interruption::check() const {
  if (arrived != 0)
    fail(std::string("interrupted by ") + (arrived == SIGINT ? "SIGINT" : "SIGTERM") + "; nothing of this is left");
}

}  // namespace vgpu::ctl
