// A part of the address space from which ranges are taken, the lowest that is free first. So a range's address depends only on
// which others are taken. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace vgpu::stub {

class AddressRanges {
 public:
  // All of [base, base + bytes) is free.
  AddressRanges(uint64_t base, uint64_t bytes) : base(base), end(base + bytes) {}

  // The lowest free range of `bytes` whose beginning is a multiple of `unit`, a power of two, which is taken from here on.
  // Nothing if there is none.
  std::optional<uint64_t> take(uint64_t bytes, uint64_t unit);
  // Takes [address, address + bytes). Whether all of it was free.
  bool takeAt(uint64_t address, uint64_t bytes);
  // Whatever of [address, address + bytes) is taken is free again: parts of what was taken at once, or several.
  void give(uint64_t address, uint64_t bytes);

  // Gives back all that was taken at once from `address` on. Nothing if no range begins there.
  void giveWhole(uint64_t address) { taken.erase(address); }

  // How many bytes are taken.
  uint64_t takenBytes() const;

  bool contains(uint64_t address) const { return address >= base && address < end; }

 private:
  uint64_t base, end;
  std::map<uint64_t, uint64_t> taken;  // beginning to end
};

}  // namespace vgpu::stub
