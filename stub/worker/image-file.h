// One file of the image store: a module image, what was found out about it, and machine code of it (docs/image-cache.md is the
// format).
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

// Machine code of an image, unpacked (machine-code.h): for one architecture. Empty: none is known.
struct ImageCode {
  unsigned architecture = 0;
  std::span<const std::byte> bytes;
};

// A file of the store, mapped: all workers that have the image share its pages. Read-only, and whole as long as nobody
// changes the file in place, which the store never does; that the file is removed does not matter.
class StoredImage {
 public:
  StoredImage(StoredImage&& other) noexcept;
  StoredImage& operator=(StoredImage&& other) noexcept;
  ~StoredImage();

  // Maps the plain file `fd` and checks all of it against its checksums, and that it was written for `digest`, which is the name that
  // it is asked for by. Nothing where it is not as it was written, or of another format version: `damage`
  // says what was found. Nothing, and no damage, where it cannot be mapped.
  static std::optional<StoredImage> read(int fd, const ImageDigest& digest, std::string& damage);

  // A zero byte lies behind them.
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

// What precedes the image in its file, and what follows it before the code: a zero byte, and others up to the next page if there
// is code.
std::vector<std::byte> imageFileHead(const ImageDigest& digest, std::span<const std::byte> image, const ImageFacts& facts,
                                     const ImageCode& code);
std::vector<std::byte> imageFileGap(std::span<const std::byte> image, const ImageCode& code);

}  // namespace vgpu::stub
