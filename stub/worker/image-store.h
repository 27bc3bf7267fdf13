// The module images that this node has seen, in a folder of files named by the SHA-256 of what they hold
// (docs/image-cache.md). A program that names an image's digest need not send the image.
//
// Owns the folder's descriptor. Used by the working thread alone. Any number of workers use one folder at the same time
// without a lock: a file has its name only once it is whole, is never changed then, and stays mapped where it is
// removed.
//
// Nothing here can fail a program: what cannot be read is absent, what cannot be written is not kept, which is logged
// once. A suspend keeps nothing of it: a snapshot holds the images themselves.
#pragma once

#include <kj/io.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "stub/worker/image-file.h"

namespace vgpu::stub {

class ImageStore {
 public:
  // The store in `directory`, made where it is not there, that holds at most about `limitBytes`. Nothing where the
  // folder is not private to us (private-folder.h); `problem` says why.
  static std::optional<ImageStore> open(const std::string& directory, uint64_t limitBytes, std::string& problem);

  // The image of that digest, null where it is not there; counts as its last use. A file is checked when it is mapped, its
  // content by its name, and not again as long as somebody has it. What is damaged is removed, and absent.
  std::shared_ptr<const StoredImage> find(const ImageDigest& digest);

  // Keeps an image, whose digest the caller has computed himself, in the place of those that were not used for longest.
  void add(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts);

 private:
  ImageStore(kj::AutoCloseFd folder, std::string path, uint64_t limitBytes)
      : folder(kj::mv(folder)), path(std::move(path)), limitBytes(limitBytes) {}
  std::shared_ptr<const StoredImage> read(const ImageDigest& digest);
  int write(const std::string& name, std::span<const std::byte> head, std::span<const std::byte> image);
  void makeRoom(uint64_t bytes);
  void complain(int error);

  kj::AutoCloseFd folder;
  std::string path;
  uint64_t limitBytes;
  std::optional<uint64_t> heldBytes;  // as far as we know: others add too. Counted again when it reaches the limit
  bool complained = false;
  std::map<ImageDigest, std::weak_ptr<const StoredImage>> mapped;  // as many as the folder has had
};

}  // namespace vgpu::stub
