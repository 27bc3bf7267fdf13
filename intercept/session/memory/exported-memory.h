// A file descriptor that stands for physical memory, or a pool, of this session: one end of a socket pair, which the program holds and may
// pass on and duplicate. While any copy of it is open, our end gets no hang-up. A message queued in it has the name by which another
// session finds the object (shared-objects.h): every holder of the descriptor can read the name, and leaves it in the queue.
#pragma once

#include <optional>
#include <utility>

#include "intercept/session/memory/shared-objects.h"

namespace vgpu::client {

class ExportedMemory {
 public:
  enum class What : uint64_t { physical = 0x7968702d75706776, pool = 0x6f6f702d75706776 };  // "vgpu-phy", "vgpu-poo"

  // `descriptor` receives the program's end. Nothing if the system has no descriptors left.
  static std::optional<ExportedMemory> make(int& descriptor, What what, const SharedName& name);
  // The name in a descriptor of any session; nothing if it does not stand for a `what`.
  static std::optional<SharedName> nameIn(int descriptor, What what);
  ExportedMemory(ExportedMemory&& other) noexcept : ours(std::exchange(other.ours, -1)) {}
  ExportedMemory& operator=(ExportedMemory&& other) noexcept {
    std::swap(ours, other.ours);
    return *this;
  }
  ~ExportedMemory();

  // Whether the program, or a process that it passed the descriptor to, still has it open.
  bool isOpen() const;

 private:
  explicit ExportedMemory(int ours) : ours(ours) {}

  int ours;
};

}  // namespace vgpu::client
