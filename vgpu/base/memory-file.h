// A piece of memory that two processes share: a memfd of fixed size, sealed against resizing, so that neither side can
// make the other fault by truncating it. Or a piece of a file with a name, which a virtual machine has as its device
// (vgpu/wire/guest-file.h): that guest cannot resize it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

class MemoryFile {
 public:
  MemoryFile() = default;
  // A new one of `bytes`, sparse. Throws kj::Exception.
  static MemoryFile create(const std::string& name, uint64_t bytes);
  // Takes ownership of `fd`, which came from an untrusted process. Throws kj::Exception unless it is a memfd of a size
  // between `leastBytes` and `mostBytes`, sealed against growing and shrinking.
  static MemoryFile adopt(int fd, uint64_t leastBytes, uint64_t mostBytes);
  // Whether it is a memfd that is sealed so.
  static bool isSealed(int fd);
  // Whether the bytes of any file are in memory alone: a memfd's, one's of /dev/shm or of huge pages.
  static bool isInMemory(int fd);
  // Of what pages its mappings are made, in bytes: whole ones are mapped and unmapped. Of huge pages, theirs.
  static uint64_t pageBytes(int fd);
  // Takes ownership of `fd`, a file with a name: the piece of `bytes` that begins at the descriptor's position, so that whoever
  // is passed the descriptor has the same piece. Throws kj::Exception if the file has no such piece, or it begins in a page.
  static MemoryFile adoptPiece(int fd, uint64_t bytes);

  MemoryFile(MemoryFile&&) noexcept;
  MemoryFile& operator=(MemoryFile&&) noexcept;
  ~MemoryFile();

  int fd() const { return descriptor; }
  uint64_t bytes() const { return size; }
  // Where it begins in the file; not 0 for a piece.
  uint64_t offset() const { return start; }
  bool isPiece() const { return start != 0; }

 private:
  MemoryFile(int fd, uint64_t bytes) : descriptor(fd), size(bytes) {}
  int descriptor = -1;
  uint64_t size = 0, start = 0;
};

// A mapping of a memory file, unmapped with its owner.
class Mapping {
 public:
  Mapping() = default;
  // Maps all of `file`, at exactly `address` if that is not null. Throws kj::Exception if the address is taken.
  Mapping(const MemoryFile& file, void* address = nullptr);
  Mapping(Mapping&&) noexcept;
  Mapping& operator=(Mapping&&) noexcept;
  ~Mapping();

  std::byte* data() const { return start; }
  uint64_t bytes() const { return size; }

  struct Piece {
    uint64_t offset, bytes;
  };
  // Unmaps all but `kept`, in order, which stay mapped and are not this object's any more. It has nothing afterwards.
  void unmapAllBut(const std::vector<Piece>& kept);

 private:
  std::byte* start = nullptr;
  uint64_t size = 0;
};

}  // namespace vgpu
