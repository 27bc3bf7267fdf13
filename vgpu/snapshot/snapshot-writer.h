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

// Whether files are synced to disk when they are finished. Unsynced ones are lost if the machine loses power, as the programs that need
// them are.
enum class Durability { synced, unsynced };

// A file of a new snapshot.
class FileWriter {
 public:
  void write(std::span<const std::byte> bytes);
  // Waits until the file is on disk, if it is to be synced.
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

// A pack of a new snapshot: the concatenation of chunks' bytes. One thread at a time.
class PackWriter {
 public:
  // `path` is for messages.
  PackWriter(kj::AutoCloseFd file, std::string path, Durability durability = Durability::synced)
      : file(kj::mv(file)), path(std::move(path)), durability(durability) {}
  // Returns the offset at which the bytes begin.
  uint64_t append(std::span<const std::byte> bytes);
  // Reserves space for so many bytes, which are written later. Returns the offset at which it begins.
  uint64_t leave(uint64_t bytes);
  // Waits as FileWriter::finish() does. Returns the size in bytes.
  uint64_t finish();

 private:
  kj::AutoCloseFd file;
  std::string path;
  Durability durability;
  uint64_t written = 0, begun = 0;  // bytes written; those of them for which the disk write was already started
};

// Writes a snapshot into the files of a target. The manifest is published last.
class SnapshotWriter {
 public:
  // For a target in another process: its descriptor, and its path for messages.
  SnapshotWriter(kj::AutoCloseFd directory, std::string path, Durability durability = Durability::synced);
  // With a target of its own, which is kept when the manifest is published.
  explicit SnapshotWriter(const std::string& path);
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  const std::string& where() const { return path; }
  FileWriter create(const char* name);
  // The packs that the target has.
  std::vector<PackWriter> openPacks();
  FileSum write(const char* name, std::span<const std::byte> bytes);

  // Publishes the manifest: from here on the snapshot exists.
  void publish(const std::string& text);

 private:
  explicit SnapshotWriter(std::unique_ptr<SnapshotTarget> target);
  int openFile(const std::string& name);

  std::unique_ptr<SnapshotTarget> target;
  const std::string path;
  const Durability durability;
  kj::AutoCloseFd directory;
  std::unique_ptr<FileWriter> manifest;  // open from the start, under the name of an unfinished manifest
};

}  // namespace vgpu::snapshot
