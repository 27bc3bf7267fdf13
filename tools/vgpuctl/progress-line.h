// Shows how far a long operation is, on one line of a terminal.
#pragma once

#include <kj/async.h>

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
};

// "1.5 GiB"
std::string humanBytes(uint64_t bytes);

}  // namespace vgpu::ctl
