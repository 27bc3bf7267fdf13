// The target of a migration: takes what the source sends ahead into a worker that has no session yet.
//
// Leases memory of the arenas as the source names it, writes chunks there, and makes objects; which it has is what a restore then
// need neither read from files nor make. A thread a stream; what they share is behind `mutex`, a leaf but for the worker's own. Ended before it is used, it
// leaves a worker that is of no further use.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/sent-ahead.h"
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
  checkpoint::SentAhead& finish();

 private:
  class Receiver;
  std::string noteFailure(const std::string& why);
  void lease(const ChunkMessage& message);
  void requireLeased(const ChunkMessage& message);
  void note(const std::vector<ChunkMessage>& chunks);
  void beginImage(const ChunkMessage& message);
  void takePiece(const ChunkMessage& message, std::span<const std::byte> bytes);
  void make(std::span<const std::byte> objects);
  void requireSound(const DigestKey& key);

  const stub::Driver& driver;
  stub::Worker& worker;
  std::mutex mutex;  // guards the next five
  bool isFinished = false;
  std::string failure;
  NamedLeases leases;
  checkpoint::SentAhead sent;
  std::set<uint64_t> newImages;  // that have not been compared with their digests
  std::vector<std::unique_ptr<ChunkStream>> streams;
  ThreadGroup threads;  // ends first
};

}  // namespace vgpu::migrate
