// A content-addressed store: a folder of files, each named by the SHA-256 of the data that it holds (docs/image-cache.md). Its first use is
// for module images.
//
// Owns the folder's descriptor. One thread at a time. Any number of processes use one folder at the same time without a lock: a file gets
// its name once it is complete, never changes afterwards, and stays readable after its removal for a process that has it open.
//
// The content of a file is its user's affair: what it holds besides the named data, and whether it is intact, the user must check.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>

#include "vgpu/wire/image-digest.h"

namespace vgpu {

class Store {
 public:
  // The store in `directory`, created if it does not exist, with a limit of about `limitBytes`. Returns nothing if the folder is not
  // private to us (private-folder.h); `problem` says why.
  static std::optional<Store> open(const std::string& directory, uint64_t limitBytes, std::string& problem);

  // Opens the file of that digest for reading. Returns nothing if there is none, or if it cannot be ours: `damage` then says what lies
  // there.
  kj::Maybe<kj::AutoCloseFd> find(const ImageDigest& digest, std::string& damage) const;
  // Records that the file was used now.
  void touch(const ImageDigest& digest) const;
  // Removes a file that fails its user's checks.
  void remove(const ImageDigest& digest) const;

  // Writes `parts`, one after the other, as the file of that digest; removes the least recently used files to make room. Returns 0 or an
  // errno; 0 also if the file exists already, or is larger than the store.
  using Part = std::span<const std::byte>;
  int add(const ImageDigest& digest, std::initializer_list<Part> parts);

  const std::string& path() const { return directory; }

 private:
  Store(kj::AutoCloseFd folder, std::string directory, uint64_t limitBytes)
      : folder(kj::mv(folder)), directory(std::move(directory)), limitBytes(limitBytes) {}
  int write(const std::string& name, std::initializer_list<Part> parts);
  void makeRoom(uint64_t bytes);

  kj::AutoCloseFd folder;
  std::string directory;
  uint64_t limitBytes;
  std::optional<uint64_t> heldBytes;  // an estimate, because other processes add files too; counted again when it reaches the limit
};

}  // namespace vgpu
