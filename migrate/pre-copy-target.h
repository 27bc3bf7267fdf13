// The target of a migration: takes the memory that the source sends ahead into a worker that has no session yet.
//
// Leases memory of the arenas as the source names it, and writes chunks there; which it has is what a restore then need not read
// from files. A thread a stream; what they share is behind `mutex`, a leaf but for the worker's own. Ended before it is used, it
// leaves a worker that is of no further use.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/resident-chunks.h"
#include "migrate/chunk-stream.h"
#include "migrate/named-leases.h"
#include "stub/worker/worker.h"
#include "vgpu/base/thread-group.h"

namespace vgpu::migrate {

class PreCopyTarget {
 public:
  // Begins to take. Both must live longer; nobody else uses the worker until finish().
  PreCopyTarget(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> streams);
  ~PreCopyTarget();

  // Once the source has flushed all that it has sent: what is there. Throws kj::Exception that says why a stream has ended
  // before.
  const checkpoint::ResidentChunks& finish();

 private:
  class Receiver;
  std::string noteFailure(const std::string& why);
  void lease(const ChunkMessage& message);
  void requireLeased(const ChunkMessage& message);
  void note(const std::vector<ChunkMessage>& chunks);

  const stub::Driver& driver;
  stub::Worker& worker;
  std::mutex mutex;  // guards the next four
  bool isFinished = false;
  std::string failure;
  NamedLeases leases;
  checkpoint::ResidentChunks chunks;
  std::vector<std::unique_ptr<ChunkStream>> streams;
  ThreadGroup threads;  // ends first
};

}  // namespace vgpu::migrate
