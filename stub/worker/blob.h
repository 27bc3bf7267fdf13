// A module image in the worker, kept while the module lives because a snapshot needs it: sent by the program, read from a snapshot, or a
// file of the image store.
//
// Filled by the thread of its GPU; slow calls (slow-calls.h) read it too, once it is whole. A suspend keeps the bytes, not the facts, which
// the next worker finds again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "stub/worker/image-file.h"

namespace vgpu::stub {

class Blob {
 public:
  enum class Origin { program, snapshot };

  // Reserves address space for an image of `bytes`, which are then appended. Memory is used only as bytes arrive, because the announced
  // size is untrusted. Nothing if the system refuses.
  // `majors`: of the GPU that loads it.
  static std::optional<Blob> reserve(Origin origin, uint64_t bytes, Majors majors = allMajors);
  explicit Blob(std::shared_ptr<const StoredImage> image, Majors majors = allMajors) : majors(majors), stored(std::move(image)) {}

  // The announced number of bytes, zero where none have arrived. One more zero byte follows them.
  std::span<const std::byte> bytes() const;
  // Computed at the first call, which may be made only when all bytes are there.
  const ImageFacts& facts() const;
  // The unpacked machine code that the store has with it.
  ImageCode storedCode() const { return stored ? stored->code() : ImageCode{}; }

  // Whether it uses memory of this process: a file of the store does not.
  bool isOwn() const { return !stored; }
  // The number of bytes that have arrived. A file of the store is whole.
  uint64_t arrivedBytes() const { return stored ? bytes().size() : arrived; }
  bool isWhole() const { return arrivedBytes() == bytes().size(); }
  // Append bytes, or zeros, which use no memory; in all not more than announced.
  void append(std::span<const std::byte> piece);
  void appendZeros(uint64_t bytes) { arrived += bytes; }

  // Whether the store may lack it: the program has sent it, and it has not been added to the store.
  bool isNew() const { return !stored && origin == Origin::program && !kept; }
  void noteKept() { kept = true; }

 private:
  struct Unmap {
    size_t bytes;
    void operator()(std::byte* room) const;
  };
  Blob(Origin origin, std::unique_ptr<std::byte, Unmap> room, uint64_t announced, Majors majors)
      : majors(majors), origin(origin), room(std::move(room)), announced(announced) {}

  Majors majors;
  Origin origin = Origin::program;
  bool kept = false;
  std::unique_ptr<std::byte, Unmap> room;  // the announced bytes and one more
  uint64_t announced = 0, arrived = 0;
  std::shared_ptr<const StoredImage> stored;
  mutable std::optional<ImageFacts> known;
};

}  // namespace vgpu::stub
