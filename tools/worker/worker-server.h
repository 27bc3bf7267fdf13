// Interface Worker: one session's worker, called by vgpud.
//
// The event loop only receives calls and sends replies. Driver, worker and snapshots are used on the work thread alone, one request after
// the other.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "checkpoint/pinned-memory.h"
#include "checkpoint/snapshot.h"
#include "migrate/pre-copy-target.h"
#include "stub/driver/driver.h"
#include "stub/gpu/primary-context.h"
#include "stub/worker/worker.h"
#include "tools/worker/process-record.h"
#include "tools/worker/spare-relay.h"
#include "tools/worker/work-thread.h"
#include "vgpu/control/control.capnp.h"

namespace vgpu::stub {

class WorkerServer final : public control::Worker::Server {
 public:
  // `library`: the driver, as for Driver::load. It is loaded at `hello`. What `images` refers to must live longer. `outputFile`: from
  // DeviceOutput::redirect(). `fold`, `launches`, `libraryFolder`: for the worker. `pinnedFile`: the daemon's pinned memory; empty if it
  // has none.
  WorkerServer(std::string library, const stub::Images& images, int outputFile, FoldMode fold, LaunchCounters* launches,
               std::string libraryFolder, MemoryFile pinnedFile)
      : library(std::move(library)), images(images), outputFile(outputFile), fold(fold), launches(launches),
        libraryFolder(std::move(libraryFolder)), pinnedFile(std::move(pinnedFile)) {}

 protected:
  kj::Promise<void> hello(HelloContext context) override;
  kj::Promise<void> attach(AttachContext context) override;
  kj::Promise<void> quiesce(QuiesceContext context) override;
  kj::Promise<void> proceed(ProceedContext context) override;
  kj::Promise<void> save(SaveContext context) override;
  kj::Promise<void> restore(RestoreContext context) override;
  kj::Promise<void> recycle(RecycleContext context) override;
  kj::Promise<void> write(WriteContext context) override;
  kj::Promise<void> beginSnapshot(BeginSnapshotContext context) override;
  kj::Promise<void> explain(ExplainContext context) override;
  kj::Promise<void> release(ReleaseContext context) override;
  kj::Promise<void> reclaim(ReclaimContext context) override;
  kj::Promise<void> sendAhead(SendAheadContext context) override;
  kj::Promise<void> takeAhead(TakeAheadContext context) override;
  kj::Promise<void> showMemory(ShowMemoryContext context) override;

 private:
  stub::Worker& running();
  void attachNewMemory();
  void offerRoom();
  ProcessRecord record();
  void claim(uint64_t handover);
  void registerPinned();
  bool useDevices(const std::vector<CUdevice>& order);
  std::span<std::byte> pinnedBytes() const { return pinned == nullptr ? std::span<std::byte>() : pinned->bytes(); }

  const std::string library;
  const stub::Images images;
  const int outputFile;
  const FoldMode fold;
  LaunchCounters* const launches;
  const std::string libraryFolder;
  const MemoryFile pinnedFile;
  std::shared_ptr<SpareRelay> spare;  // set by the event loop before the thread gets work
  // Used by the work thread:
  std::unique_ptr<stub::Driver> driver;
  std::unique_ptr<stub::Worker> worker;
  std::optional<stub::PrimaryContext> pinnedContext;  // the context in which it is registered, whatever devices the session has
  std::unique_ptr<checkpoint::PinnedMemory> pinned;
  bool isReleased = false;  // its session has been released, and there is no other yet
  std::unique_ptr<migrate::PreCopyTarget> ahead;  // for a session that arrives, until it is restored
  ProcessRecord fresh;
  bool kernelsReachProcess = false;  // CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS of a device
  std::optional<checkpoint::Restored> restored;  // until the session is claimed
  bool isMemoryChecked = true;                   // whether the program's memory has been compared with the snapshot
  // Destroyed first, because it uses the other members.
  WorkThread thread;
};

}  // namespace vgpu::stub
