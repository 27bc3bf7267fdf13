// A piece of memory that two processes share: a memfd of fixed size, sealed against resizing, so that neither side can make the other fault
// by truncating it. Or a piece of a named file that a virtual machine has as a device (vgpu/wire/guest-file.h); that guest cannot resize
// the file.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace vgpu {

class MemoryFile {
 public:
  MemoryFile() = default;
  // Creates a sparse memfd of `bytes`. Throws kj::Exception.
  static MemoryFile create(const std::string& name, uint64_t bytes);
  // Takes ownership of `fd`, which came from an untrusted process. Throws kj::Exception unless it is a memfd of a size
  // between `leastBytes` and `mostBytes`, sealed against growing and shrinking.
  static MemoryFile adopt(int fd, uint64_t leastBytes, uint64_t mostBytes);
  // Whether `fd` is a memfd that is sealed against growing and shrinking.
  static bool isSealed(int fd);
  // Whether the file's bytes exist only in memory: a memfd, a file of /dev/shm or one of huge pages.
  static bool isInMemory(int fd);
  // The page size of the file's mappings, in bytes: mappings and unmappings are multiples of it. For huge pages, the huge page's size.
  static uint64_t pageBytes(int fd);
  // Takes ownership of `fd`, a named file: adopts the piece of `bytes` that begins at the descriptor's file position, so that every process
  // that receives the descriptor has the same piece. Throws kj::Exception if the file has no such piece, or if the piece does not begin at
  // a page.
  static MemoryFile adoptPiece(int fd, uint64_t bytes);

  MemoryFile(MemoryFile&&) noexcept;
  MemoryFile& operator=(MemoryFile&&) noexcept;
  ~MemoryFile();

  int fd() const { return descriptor; }
  uint64_t bytes() const { return size; }
  // The offset in the file at which the piece begins; 0 if this is a whole memfd.
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
  // Unmaps everything except `kept` (in ascending order). The kept pieces stay mapped but no longer belong to this object, which owns
  // nothing afterwards.
  void unmapAllBut(const std::vector<Piece>& kept);

 private:
  std::byte* start = nullptr;
  uint64_t size = 0;
};

}  // namespace vgpu
