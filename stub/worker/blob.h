// A module image as the worker has it, kept while the module lives because a snapshot needs it again: what the program
// has sent, what a snapshot held, or a file of the image store.
//
// The working thread's. A suspend keeps the bytes; what was found out about them is found again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "stub/worker/image-file.h"

namespace vgpu::stub {

class Blob {
 public:
  enum class Origin { program, snapshot };

  // Empty, to be written.
  Blob(Origin origin) : origin(origin) {}
  Blob(StoredImage image) : stored(std::move(image)) {}

  // As many as announced, zero where nothing has arrived. One more zero byte lies behind them.
  std::span<const std::byte> bytes() const;
  // Found out when they are first asked for.
  const ImageFacts& facts() const;

  // Not for a file of the store, which cannot be written; not outside of bytes().
  bool isWritable() const { return !stored; }
  void resize(uint64_t bytes);
  void write(uint64_t offset, std::span<const std::byte> piece);

  // Whether the store may not know it: the program has sent it, and it was not kept since.
  bool isNew() const { return !stored && origin == Origin::program && !kept; }
  void noteKept() { kept = true; }

 private:
  Origin origin = Origin::program;
  bool kept = false;
  std::vector<std::byte> own;  // with the zero byte, unless it is empty
  std::optional<StoredImage> stored;
  mutable std::optional<ImageFacts> known;
};

}  // namespace vgpu::stub
