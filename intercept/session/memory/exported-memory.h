// A descriptor that stands for physical memory of this session: one end of a pair of sockets, which the program has, and passes on
// and duplicates as it likes. As long as any copy of it is open, our end is not hung up.
//
// Another process that receives the descriptor cannot use it: a session's memory is its own.
#pragma once

#include <optional>
#include <utility>

#include <sys/types.h>

namespace vgpu::client {

class ExportedMemory {
 public:
  // The program's end goes to `descriptor`. Nothing if the system has no descriptors left.
  static std::optional<ExportedMemory> make(int& descriptor);
  ExportedMemory(ExportedMemory&& other) noexcept : ours(std::exchange(other.ours, -1)), inode(other.inode) {}
  ExportedMemory& operator=(ExportedMemory&& other) noexcept {
    std::swap(ours, other.ours);
    std::swap(inode, other.inode);
    return *this;
  }
  ~ExportedMemory();

  // Whether the program, or whoever it has given it to, still has the descriptor open.
  bool isOpen() const;
  // Whether `descriptor` is a copy of it.
  bool is(int descriptor) const;

 private:
  ExportedMemory(int ours, ino_t inode) : ours(ours), inode(inode) {}

  int ours;
  ino_t inode;  // of the program's end
};

}  // namespace vgpu::client
