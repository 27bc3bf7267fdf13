#pragma once

#include <kj/io.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "vgpu/snapshot/checksum.h"
#include "vgpu/snapshot/snapshot-files.h"
#include "vgpu/snapshot/snapshot-target.h"

namespace vgpu::snapshot {

// Whether the disk has a file when it is finished. Without that it is lost with this machine's power, as the programs of it are.
enum class Durability { synced, unsynced };

// A file of a new snapshot.
class FileWriter {
 public:
  void write(std::span<const std::byte> bytes);
  // Waits until the disk has it, if it is to be synced.
  FileSum finish();

 private:
  friend class SnapshotWriter;
  FileWriter(kj::AutoCloseFd file, std::string path, Durability durability)
      : file(kj::mv(file)), path(std::move(path)), durability(durability) {}
  kj::AutoCloseFd file;
  std::string path;
  Durability durability;
  uint64_t written = 0;
  Checksum checksum;
};

// A pack of a new snapshot: bytes of chunks, one behind the other. One thread at a time.
class PackWriter {
 public:
  // `path` is for messages.
  PackWriter(kj::AutoCloseFd file, std::string path, Durability durability = Durability::synced)
      : file(kj::mv(file)), path(std::move(path)), durability(durability) {}
  // Where they begin.
  uint64_t append(std::span<const std::byte> bytes);
  // Leaves room for so many, which somebody writes later. Where they begin.
  uint64_t leave(uint64_t bytes);
  // Waits as FileWriter's. How many there are.
  uint64_t finish();

 private:
  kj::AutoCloseFd file;
  std::string path;
  Durability durability;
  uint64_t written = 0, begun = 0;  // to be written, of which the disk was asked to write so many
};

// Writes a snapshot into the files of a target. The manifest comes last.
class SnapshotWriter {
 public:
  // Of a target in another process: its descriptor, and its path for messages.
  SnapshotWriter(kj::AutoCloseFd directory, std::string path, Durability durability = Durability::synced);
  // Of a target of its own, kept when the manifest is published.
  explicit SnapshotWriter(const std::string& path);
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  const std::string& where() const { return path; }
  FileWriter create(const char* name);
  // Those that the target has.
  std::vector<PackWriter> openPacks();
  FileSum write(const char* name, std::span<const std::byte> bytes);

  // The manifest: from here on there is a snapshot.
  void publish(const std::string& text);

 private:
  explicit SnapshotWriter(std::unique_ptr<SnapshotTarget> target);
  int openFile(const std::string& name);

  std::unique_ptr<SnapshotTarget> target;
  const std::string path;
  const Durability durability;
  kj::AutoCloseFd directory;
  std::unique_ptr<FileWriter> manifest;  // open from the start, under the name of an unfinished one
};

}  // namespace vgpu::snapshot
