// One file of the image store: a module image, its facts, and its unpacked machine code (format: docs/image-cache.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "stub/worker/image-facts.h"
#include "vgpu/wire/image-digest.h"

namespace vgpu::stub {

// Machine code of an image, unpacked (machine-code.h), for one architecture. Empty if none is known.
struct ImageCode {
  unsigned architecture = 0;
  std::span<const std::byte> bytes;
};

// A file of the store, mapped: all workers that use the image share its pages. Read-only; its content stays valid because the store never
// changes a file in place. Removing the file does no harm.
class StoredImage {
 public:
  StoredImage(StoredImage&& other) noexcept;
  StoredImage& operator=(StoredImage&& other) noexcept;
  ~StoredImage();

  // Maps the file `fd` and checks all of it against its checksums, and that it was written for `digest`, by which it was looked up. Nothing
  // if it is damaged or of another format version: `damage` then describes what was found. Nothing, and no damage, if it cannot be mapped.
  static std::optional<StoredImage> read(int fd, const ImageDigest& digest, std::string& damage);

  // A zero byte follows them.
  std::span<const std::byte> bytes() const { return image; }
  const ImageFacts& facts() const { return found; }
  const ImageCode& code() const { return unpacked; }

 private:
  StoredImage() = default;
  std::string check(const ImageDigest& digest);

  std::span<const std::byte> file, image;
  ImageFacts found;
  ImageCode unpacked;
};

// What precedes the image in its file, and what lies between the image and the code: a zero byte, and, if there is code, zeros up to the
// next page.
std::vector<std::byte> imageFileHead(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts,
                                     const ImageCode& code);
std::vector<std::byte> imageFileGap(std::span<const std::byte> image, const ImageCode& code);

}  // namespace vgpu::stub
