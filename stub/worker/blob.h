// A module image as the worker has it, kept while the module lives because a snapshot needs it again: what the program
// has sent, what a snapshot held, or a file of the image store.
//
// Filled by the thread of its GPU; read by the slow calls there too (slow-calls.h), when it is whole. A suspend keeps the bytes;
// what was found out about them is found again.
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

  // Room for an image of `bytes`, which are then appended. It takes addresses at once and memory only as bytes come: an
  // announced size is somebody's word. Nothing where the system has no such room.
  // `majors`: of the GPU that it is for.
  static std::optional<Blob> reserve(Origin origin, uint64_t bytes, Majors majors = allMajors);
  explicit Blob(std::shared_ptr<const StoredImage> image, Majors majors = allMajors) : majors(majors), stored(std::move(image)) {}

  // As many as announced, zero where nothing has arrived. One more zero byte lies behind them.
  std::span<const std::byte> bytes() const;
  // Found out when they are first asked for, which is once all of them are there.
  const ImageFacts& facts() const;
  // What the store has of it, unpacked.
  ImageCode storedCode() const { return stored ? stored->code() : ImageCode{}; }

  // Whether it takes memory of its own: a file of the store does not.
  bool isOwn() const { return !stored; }
  // How many have arrived. A file of the store is whole.
  uint64_t arrivedBytes() const { return stored ? bytes().size() : arrived; }
  bool isWhole() const { return arrivedBytes() == bytes().size(); }
  // The next bytes, and bytes that are zero, which take no memory. Not more than announced.
  void append(std::span<const std::byte> piece);
  void appendZeros(uint64_t bytes) { arrived += bytes; }

  // Whether the store may not know it: the program has sent it, and it was not kept since.
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
  std::unique_ptr<std::byte, Unmap> room;  // of the announced bytes and one more
  uint64_t announced = 0, arrived = 0;
  std::shared_ptr<const StoredImage> stored;
  mutable std::optional<ImageFacts> known;
};

}  // namespace vgpu::stub
