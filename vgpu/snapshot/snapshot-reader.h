#pragma once

#include <kj/io.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "vgpu/snapshot/checksum.h"
#include "vgpu/snapshot/snapshot-files.h"

namespace vgpu::snapshot {

// Throws an exception that names the failed check.
using Refusal = std::function<void(const std::string& check)>;

// A file of a snapshot, read from its beginning. Opening compares its size, finish() its checksum.
class FileReader {
 public:
  // Fills `out` completely. Throws kj::Exception if the file ends earlier.
  void read(std::span<std::byte> out);
  uint64_t left() const { return sum.bytes - done; }
  // Throws kj::Exception, naming the file and the failed check, unless all of the file was read and its checksum matches.
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

// A pack of a snapshot. Any number of threads may read.
class PackReader {
 public:
  // `directory` and `name` are for messages.
  PackReader(kj::AutoCloseFd file, std::string directory, std::string name)
      : file(kj::mv(file)), directory(std::move(directory)), name(std::move(name)) {}
  // A pack of a store, at `path`: opened for each read, because a store's chunks may lie in more packs than a process may open files.
  PackReader(std::string store, std::string path) : directory(std::move(store)), name(std::move(path)) {}
  // Fills `out` completely from `offset`. Throws kj::Exception that names the file if it cannot.
  void read(uint64_t offset, std::span<std::byte> out) const;
  // As FileReader::refuse().
  [[noreturn]] void refuse(const std::string& check) const;

 private:
  kj::AutoCloseFd file;
  std::string directory, name;
};

// An existing snapshot.
class SnapshotReader {
 public:
  // Throws kj::Exception if `path` is not a directory that we may read.
  explicit SnapshotReader(const std::string& path);

  // The manifest's bytes, unverified; at most `mostBytes`.
  std::string readManifest(uint64_t mostBytes) const;
  // The manifest's first bytes, at most `bytes`.
  std::string readManifestHead(uint64_t bytes) const;
  // Throws kj::Exception, naming the file, unless it is a plain file of the expected size.
  FileReader open(const char* name, const FileSum& expected) const;
  // Opens the packs; each must be a plain file of its size.
  std::vector<PackReader> openPacks(std::span<const uint64_t> sizes) const;
  // The content of a file whose checksum matches.
  std::vector<std::byte> readWhole(const char* name, const FileSum& expected, uint64_t mostBytes) const;
  // Reads all of these files, by name, and compares them with their sums; `done` is called with the number of bytes read. Throws
  // kj::Exception that names the first file that differs, and the failed check.
  void compare(const std::map<std::string, FileSum>& files, const std::function<void(uint64_t bytes)>& done) const;

  [[noreturn]] void refuse(const std::string& name, const std::string& check) const;
  const std::string& where() const { return path; }

 private:
  std::string textOf(kj::AutoCloseFd file, uint64_t bytes) const;
  kj::AutoCloseFd openPlain(const char* name, uint64_t& bytes) const;
  kj::AutoCloseFd openSized(const char* name, uint64_t expected) const;
  std::string path;
  kj::AutoCloseFd directory;
};

}  // namespace vgpu::snapshot
