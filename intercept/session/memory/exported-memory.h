// A descriptor that stands for physical memory, or a pool, of this session: one end of a pair of sockets, which the program has,
// and passes on and duplicates as it likes. As long as any copy of it is open, our end is not hung up. In it lies the name by
// which another session finds what it stands for (shared-objects.h): whoever has the descriptor can read that, and leaves it
// there.
#pragma once

#include <optional>
#include <utility>

#include "intercept/session/memory/shared-objects.h"

namespace vgpu::client {

class ExportedMemory {
 public:
  enum class What : uint64_t { physical = 0x7968702d75706776, pool = 0x6f6f702d75706776 };  // "vgpu-phy", "vgpu-poo"

  // The program's end goes to `descriptor`. Nothing if the system has no descriptors left.
  static std::optional<ExportedMemory> make(int& descriptor, What what, const SharedName& name);
  // The name in a descriptor of any session; nothing if it is none of `what`.
  static std::optional<SharedName> nameIn(int descriptor, What what);
  ExportedMemory(ExportedMemory&& other) noexcept : ours(std::exchange(other.ours, -1)) {}
  ExportedMemory& operator=(ExportedMemory&& other) noexcept {
    std::swap(ours, other.ours);
    return *this;
  }
  ~ExportedMemory();

  // Whether the program, or whoever it has given it to, still has the descriptor open.
  bool isOpen() const;

 private:
  explicit ExportedMemory(int ours) : ours(ours) {}

  int ours;
};

}  // namespace vgpu::client
