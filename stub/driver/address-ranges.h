// A part of the address space from which ranges are taken, the lowest free one first. So a range's address depends only on which other
// ranges are taken. One thread at a time.
#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace vgpu::stub {

class AddressRanges {
 public:
  // At first all of [base, base + bytes) is free.
  AddressRanges(uint64_t base, uint64_t bytes) : base(base), end(base + bytes) {}

  // Takes the lowest free range of `bytes` whose start is a multiple of `unit`, a power of two. Nothing if there is none.
  std::optional<uint64_t> take(uint64_t bytes, uint64_t unit);
  // Takes [address, address + bytes) if all of it is free; false if not.
  bool takeAt(uint64_t address, uint64_t bytes);
  // Frees whatever is taken of [address, address + bytes): parts of one range, or several ranges.
  void give(uint64_t address, uint64_t bytes);

  // Frees the whole range that begins at `address`. Does nothing if no range begins there.
  void giveWhole(uint64_t address) { taken.erase(address); }

  // The number of bytes that are taken.
  uint64_t takenBytes() const;

  bool contains(uint64_t address) const { return address >= base && address < end; }

 private:
  uint64_t base, end;
  std::map<uint64_t, uint64_t> taken;  // start to end
};

}  // namespace vgpu::stub
