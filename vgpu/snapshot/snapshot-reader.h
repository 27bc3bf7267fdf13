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

// What throws for the check that it is told.
using Refusal = std::function<void(const std::string& check)>;

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

// A pack of a snapshot. Any number of threads.
class PackReader {
 public:
  // `directory` and `name` are for messages.
  PackReader(kj::AutoCloseFd file, std::string directory, std::string name)
      : file(kj::mv(file)), directory(std::move(directory)), name(std::move(name)) {}
  // Of a store, at `path`: opened for each read, because what is in a store may be in more packs than a process may have files.
  PackReader(std::string store, std::string path) : directory(std::move(store)), name(std::move(path)) {}
  // Fills `out` whole from there. Throws kj::Exception that names the file if it cannot.
  void read(uint64_t offset, std::span<std::byte> out) const;
  // As FileReader::refuse().
  [[noreturn]] void refuse(const std::string& check) const;

 private:
  kj::AutoCloseFd file;
  std::string directory, name;
};

// A snapshot that is there.
class SnapshotReader {
 public:
  // Throws kj::Exception where `path` is no directory that we may read.
  explicit SnapshotReader(const std::string& path);

  // The manifest's bytes, whatever they are; at most `mostBytes`.
  std::string readManifest(uint64_t mostBytes) const;
  // As many of its first bytes as there are, up to `bytes`.
  std::string readManifestHead(uint64_t bytes) const;
  // Throws kj::Exception, naming the file, unless it is a plain file of the size expected.
  FileReader open(const char* name, const FileSum& expected) const;
  // The packs, of which each must be a plain file of its size.
  std::vector<PackReader> openPacks(std::span<const uint64_t> sizes) const;
  // All of a file, after its checksum was compared.
  std::vector<std::byte> readWhole(const char* name, const FileSum& expected, uint64_t mostBytes) const;
  // Reads all of these files, by name, and compares them with their sums; `done` is told of bytes. Throws kj::Exception that
  // names the first file that differs, and the check.
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
