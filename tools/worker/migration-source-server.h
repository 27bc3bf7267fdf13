// Interface MigrationSource: a session that goes to another worker, in steps that the caller controls.
//
// Made in the event loop; the source itself is made, used and destroyed on the work thread.
#pragma once

#include <memory>

#include "migrate/pre-copy-source.h"
#include "tools/worker/work-thread.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

class MigrationSourceServer final : public control::MigrationSource::Server {
 public:
  MigrationSourceServer(WorkThread& thread, std::shared_ptr<migrate::PreCopySource> source)
      : thread(thread), source(std::move(source)) {}
  ~MigrationSourceServer() noexcept(false);

 protected:
  kj::Promise<void> capture(CaptureContext context) override;
  kj::Promise<void> advance(AdvanceContext context) override;

 private:
  WorkThread& thread;
  std::shared_ptr<migrate::PreCopySource> source;
};

}  // namespace vgpu::stub
