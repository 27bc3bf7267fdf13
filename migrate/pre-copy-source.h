// The source of a migration: sends a session's device memory ahead while its program runs, modules' images and the recipes of what is
// to be made of them, and under a quiesce what has changed since. Everything else goes into the files of a snapshot, which says of
// the chunks sent ahead no more than their digests.
//
// Owns the streams to the target. Of the thread that controls the worker. Rounds come before the capture, which is done
// once. Ended at any time, it leaves nothing but files of the snapshot's directory, which are their owner's to remove.
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
  // `worker` must live longer. `writer`: of a directory that is in no store, unsynced: what loses its files
  // ends the program, too. `objects`: as of checkpoint::save(); while the program runs the list may be some time behind, or not
  // there yet.
  PreCopySource(const stub::Driver& driver, stub::Worker& worker, std::vector<kj::AutoCloseFd> streams,
                std::unique_ptr<snapshot::SnapshotWriter> writer, std::string objects);
  ~PreCopySource();

  // While the program runs: rounds, until a program that may be held for `downtime` seconds is to be held (cut-over.h). Again
  // after a while, they send what has changed since. When this returns, nothing is written to the directory before the next call.
  void runRounds(double downtime, const Progress& progress);
  // While it is quiesced. When this returns, the target has all of the memory and the directory all else.
  checkpoint::Report capture(const snapshot::Identity& identity, const Progress& progress);
  // Ends a call of another thread with an error. Any thread.
  void cancel();

 private:
  struct Held;
  struct Stream {
    explicit Stream(kj::AutoCloseFd socket) : io(kj::mv(socket)) {}
    ChunkStream io;
    std::set<uint64_t> leases;  // by address, that the target knows by it
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
  stub::PrimaryContext context;  // for memory that is pinned while the GPUs' threads work
  checkpoint::LiveCopy live;
  std::vector<std::unique_ptr<Stream>> streams;
  std::vector<stub::LeasedRange> leases;  // as of the latest round
  checkpoint::ResidentChunks sent;
  checkpoint::ImageDigests images;                    // that the target has
  std::vector<std::byte> sentObjects;                 // the latest message
  std::pair<uint64_t, size_t> listed{};               // if the list's commit and the number of images are these, it is of that message
  std::set<uint64_t> aheadRecords;                    // in it
  std::optional<checkpoint::HeldMemory> memory;       // for what has changed since the last round
  std::map<size_t, checkpoint::DevicePiece> inArena;  // of the capture: by chunk
  std::vector<Held> held;
  checkpoint::Report report;
};

}  // namespace vgpu::migrate
