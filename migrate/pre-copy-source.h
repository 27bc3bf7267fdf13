// The source of a migration: while the program runs, sends a session's device memory, modules' images and recipes of objects ahead; under a
// quiesce, sends what has changed since. Everything else goes into the files of a snapshot, which contains only the digests of chunks that
// were sent ahead.
//
// Owns the streams to the target. Used by the thread that controls the worker. Rounds come before the capture, which is done once. Ended at
// any time, it leaves only files of the snapshot's directory, which their owner removes.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/held-memory.h"
#include "checkpoint/live-copy.h"
#include "checkpoint/resident-chunks.h"
#include "checkpoint/session-capture.h"
#include "migrate/chunk-stream.h"
#include "stub/gpu/device-leases.h"
#include "stub/gpu/primary-context.h"

namespace vgpu::migrate {

using checkpoint::Progress;

class PreCopySource {
 public:
  // `worker` must live longer. `writer`: for a directory that is in no store, unsynced: a crash that loses the files ends the program, too.
  // `objects`: as for checkpoint::save(); while the program runs the list may lag behind, or not exist yet.
  PreCopySource(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> streams,
                std::unique_ptr<snapshot::SnapshotWriter> writer, std::string objects);
  ~PreCopySource();

  // While the program runs: sends rounds until the program should be held, if it may be held for `downtime` seconds (cut-over.h). Called
  // again later, sends what has changed since. After this returns, nothing is written to the directory before the next call.
  void runRounds(double downtime, const Progress& progress);
  // While the session is quiesced. When this returns, the target has all of the memory, and the directory everything else.
  checkpoint::Report capture(const snapshot::Identity& identity, const Progress& progress);
  // Makes another thread's call fail. Any thread.
  void cancel();

 private:
  struct Held;
  struct Stream {
    explicit Stream(kj::AutoCloseFd socket) : io(kj::mv(socket)) {}
    ChunkStream io;
    std::set<uint64_t> leases;  // by address: announced to the target on this stream
  };
  uint64_t sendImages();
  void sendImage(uint64_t number, std::span<const std::byte> bytes);
  void sendObjects();
  void noteLeases(std::vector<stub::LeasedRange> now);
  std::vector<checkpoint::DevicePiece> changedOf(std::vector<checkpoint::DevicePiece> pieces) const;
  void sendRound(const std::vector<checkpoint::DevicePiece>& changed, const std::string& name, const Progress& progress);
  Digest send(Stream& stream, const checkpoint::DevicePiece& piece, std::span<const std::byte> bytes);
  void sendHeld();
  void flush();
  std::byte* hold(const checkpoint::NewPiece& piece);

  const stub::Driver& driver;
  stub::Worker& worker;
  const std::unique_ptr<snapshot::SnapshotWriter> writer;
  const std::string objects;
  checkpoint::NewChunks chunks;
  stub::PrimaryContext context;  // for pinning memory while the GPUs' threads work
  checkpoint::LiveCopy live;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<stub::LeasedRange> leases;  // as of the latest round
  checkpoint::ResidentChunks sent;
  checkpoint::ImageDigests images;                    // of images that the target has
  std::vector<std::byte> sentObjects;                 // the latest message sent
  std::pair<uint64_t, size_t> listed{};               // commit of the list and number of images that the message was made from
  std::set<uint64_t> aheadRecords;                    // in that message
  std::optional<checkpoint::HeldMemory> memory;       // for bytes changed since the last round
  std::map<size_t, checkpoint::DevicePiece> inArena;  // during the capture: by chunk
  std::vector<Held> held;
  checkpoint::Report report;
};

}  // namespace vgpu::migrate
