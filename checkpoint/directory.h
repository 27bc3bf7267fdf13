// The files of a snapshot: made all or not at all, read with their sizes and checksums compared.
//
// Names are fixed and looked up in the directory's descriptor without following links, so neither a manifest nor
// whoever may write next to us leads anywhere else. Private to their owner: directory 0700, files 0600.
#pragma once

#include <kj/io.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace vgpu::checkpoint {

constexpr const char* manifestFile = "manifest.json";
constexpr const char* unfinishedManifest = "manifest.json.new";
constexpr const char* objectsFile = "objects";
constexpr const char* blobsFile = "blobs";
constexpr const char* bytesFile = "bytes";
constexpr const char* pendingCallsFile = "pending-calls";
constexpr const char* outputFile = "output";
constexpr const char* dataFiles[] = {objectsFile, blobsFile, bytesFile, pendingCallsFile, outputFile};

// XXH3, 128 bits, as 32 hexadecimal digits.
std::string checksumOf(std::span<const std::byte> bytes);

struct FileSum {
  uint64_t bytes = 0;
  std::string checksum;
  bool operator==(const FileSum&) const = default;
};

// The running checksum of a file.
class Checksum {
 public:
  Checksum();
  Checksum(Checksum&&) noexcept;
  ~Checksum();
  void add(std::span<const std::byte> bytes);
  std::string text() const;

 private:
  struct State;
  std::unique_ptr<State> state;
};

// A file of a new snapshot.
class FileWriter {
 public:
  void write(std::span<const std::byte> bytes);
  // Waits until the disk has it.
  FileSum finish();

 private:
  friend class SnapshotWriter;
  FileWriter(kj::AutoCloseFd file, std::string path) : file(kj::mv(file)), path(std::move(path)) {}
  kj::AutoCloseFd file;
  std::string path;
  uint64_t written = 0;
  Checksum checksum;
};

// Throws kj::Exception, for a person: "cannot `doing` `path`: …".
[[noreturn]] void cannotSave(const char* doing, const std::string& path, int error);

// Where a snapshot is to be written: a directory held against others from the beginning, with all its files, empty. It
// belongs to who suspends; the writer, in another process, gets the descriptor. Destroyed before keep(), it removes what it
// made, whatever became of the writer, and nothing else.
class SnapshotTarget {
 public:
  // Makes `path`, or takes it where it is an empty directory or holds no more than a snapshot that was never finished.
  // Throws kj::Exception: not empty, read-only, another suspend is writing there, …
  explicit SnapshotTarget(const std::string& path);
  ~SnapshotTarget() noexcept;
  SnapshotTarget(const SnapshotTarget&) = delete;
  SnapshotTarget& operator=(const SnapshotTarget&) = delete;

  int fd() const { return directory; }
  const std::string& path() const { return folder; }
  // There is a snapshot, and its program relies on it.
  void keep() { kept = true; }

 private:
  struct File {
    const char* name;
    kj::AutoCloseFd open;
  };
  void lock();
  void takeEmpty();
  void create(const char* name);
  void discard();

  const std::string folder;
  kj::AutoCloseFd directory;
  bool made = false, kept = false;
  unsigned mode = 0;  // of a directory that was there
  std::vector<File> files;
};

// Writes a snapshot into the files of a target. The manifest comes last.
class SnapshotWriter {
 public:
  // Of a target in another process: its descriptor, and its path for messages.
  SnapshotWriter(kj::AutoCloseFd directory, std::string path);
  // Of a target of its own, kept when the manifest is published.
  explicit SnapshotWriter(const std::string& path);
  SnapshotWriter(const SnapshotWriter&) = delete;
  SnapshotWriter& operator=(const SnapshotWriter&) = delete;

  FileWriter create(const char* name);
  FileSum write(const char* name, std::span<const std::byte> bytes);

  // The manifest: from here on there is a snapshot.
  void publish(const std::string& text);

 private:
  explicit SnapshotWriter(std::unique_ptr<SnapshotTarget> target);

  std::unique_ptr<SnapshotTarget> target;
  const std::string path;
  kj::AutoCloseFd directory;
  std::unique_ptr<FileWriter> manifest;  // open from the start, under the name of an unfinished one
};

// A file of a snapshot, read from its beginning. Its size is compared when it is opened, its checksum by finish().
class FileReader {
 public:
  // Fills `out` whole. Throws kj::Exception where the file ends before.
  void read(std::span<std::byte> out);
  uint64_t left() const { return sum.bytes - done; }
  // Throws kj::Exception, naming the file and the check, unless all of it was read and the checksum is the one
  // expected.
  void finish();
  // Refuses this file: "snapshot DIR: file NAME: `check`".
  [[noreturn]] void refuse(const std::string& check) const;

 private:
  friend class SnapshotReader;
  FileReader(kj::AutoCloseFd file, std::string directory, std::string name, FileSum sum);
  kj::AutoCloseFd file;
  std::string directory, name;
  FileSum sum;
  uint64_t done = 0;
  Checksum checksum;
};

// A snapshot that is there.
class SnapshotReader {
 public:
  // Throws kj::Exception where `path` is no directory that we may read.
  explicit SnapshotReader(const std::string& path);

  // The manifest's bytes, whatever they are; at most `mostBytes`.
  std::string readManifest(uint64_t mostBytes) const;
  // Throws kj::Exception, naming the file, unless it is a plain file of the size expected.
  FileReader open(const char* name, const FileSum& expected) const;
  // All of a file, after its checksum was compared.
  std::vector<std::byte> readWhole(const char* name, const FileSum& expected, uint64_t mostBytes) const;

  [[noreturn]] void refuse(const std::string& name, const std::string& check) const;

 private:
  kj::AutoCloseFd openPlain(const char* name, uint64_t& bytes) const;
  std::string path;
  kj::AutoCloseFd directory;
};

}  // namespace vgpu::checkpoint
