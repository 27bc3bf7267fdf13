// Pieces of data that anybody can name by their content: a folder of files, each named by the SHA-256 of what it holds
// (docs/image-cache.md). Module images are its first user.
//
// Owns the folder's descriptor. One thread at a time. Any number of processes use one folder at the same time without a lock: a
// file has its name only once it is whole, is never changed then, and stays readable for who has it open when it is removed.
//
// A file is what its user has written: what is in it besides the named bytes, and whether it is intact, is for the user to check.
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
  // The store in `directory`, made if it is not there, that holds at most about `limitBytes`. Nothing if the folder is not
  // private to us (private-folder.h); `problem` says why.
  static std::optional<Store> open(const std::string& directory, uint64_t limitBytes, std::string& problem);

  // The file of that name, open for reading. Nothing if it is not there, or cannot be one of ours: `damage` says what is there
  // then.
  kj::Maybe<kj::AutoCloseFd> find(const ImageDigest& digest, std::string& damage) const;
  // Notes that it was used now.
  void touch(const ImageDigest& digest) const;
  // Removes what does not pass its user's checks.
  void remove(const ImageDigest& digest) const;

  // Keeps `parts`, one behind the other, as the file of that name, in the place of those that were not used for longest. 0 or the
  // system's error; 0 as well if it is there, or larger than the store.
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
  std::optional<uint64_t> heldBytes;  // as far as we know: others add too. Counted again when it reaches the limit
};

}  // namespace vgpu
