// The target of a migration: receives what the source sends ahead, in a worker that has no session yet.
//
// Leases memory of the arenas as the source announces it, writes chunks there, and makes objects; a restore then neither reads nor makes
// what is there already. One thread per stream; their shared state is guarded by `mutex`, which is a leaf except for the worker's own
// locks. Ended before finish(), it leaves a worker that is of no further use.
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
  // Begins to receive. Both must live longer; nobody else may use the worker before finish().
  PreCopyTarget(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> streams);
  ~PreCopyTarget();

  // Call it when the source has flushed everything that it has sent: returns what is there. Throws kj::Exception that says why a stream has
  // ended before.
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
  std::mutex mutex;  // guards the next five members
  bool isFinished = false;
  std::string failure;
  NamedLeases leases;
  checkpoint::SentAhead sent;
  std::set<uint64_t> newImages;  // not verified yet
  std::vector<std::unique_ptr<ChunkStream>> streams;
  ThreadGroup threads;  // destroyed first
};

}  // namespace vgpu::migrate
