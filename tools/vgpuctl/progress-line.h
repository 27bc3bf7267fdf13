// Shows the progress of a long operation on one line of a terminal.
#pragma once

#include <kj/async.h>

#include <chrono>
#include <cstdint>
#include <string>

#include "vgpu/control/control.capnp.h"

namespace vgpu::ctl {

// Whether progress is shown: if stderr is a terminal, or if VGPU_PROGRESS=1.
bool wantsProgress();

class ProgressLine final : public control::Progress::Server {
 public:
  explicit ProgressLine(std::string operation) : operation(std::move(operation)), shown(wantsProgress()) {}
  ~ProgressLine() noexcept(false);

 protected:
  kj::Promise<void> report(ReportContext context) override;

 private:
  std::string operation;
  bool shown;
  bool written = false;
  std::string phase;  // the displayed phase, its start, and the bytes done then
  std::chrono::steady_clock::time_point since;
  uint64_t doneBefore = 0;
};

// The same for vgpuctl's own work, with its rate and the remaining time; updated at most every tenth of a second.
class DoneLine {
 public:
  // `all`: the number of bytes; 0 if unknown.
  DoneLine(std::string operation, uint64_t all);
  ~DoneLine();
  DoneLine(const DoneLine&) = delete;
  DoneLine& operator=(const DoneLine&) = delete;
  void add(uint64_t bytes);

 private:
  using Clock = std::chrono::steady_clock;
  const std::string operation;
  const uint64_t all;
  const bool shown;
  const Clock::time_point start = Clock::now();
  Clock::time_point next = start;
  uint64_t done = 0;
};

// The rate of an operation that has done `doneBytes` in `seconds`, and the remaining time, if that can be estimated and the operation has
// run for a second: ", 2.0 GiB a second, 3 s left".
std::string rateOf(uint64_t doneBytes, uint64_t totalBytes, double seconds);

// "1.5 GiB"
std::string humanBytes(uint64_t bytes);

}  // namespace vgpu::ctl
