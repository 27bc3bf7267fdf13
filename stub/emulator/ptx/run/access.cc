#include "stub/emulator/ptx/run/access.h"

#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

// Generic addresses of the active lanes; the lowest, the highest, and the bitwise or of all.
struct Addresses {
  uint64_t at[laneCount];
  uint64_t low = ~uint64_t{0}, high = 0, bits = 0;
};

template <class T>
void collect(Warp& warp, const T* from, uint64_t plus, uint64_t mask, uint64_t window, Addresses& found) {
  if (warp.active == ~0u) {
    for (int lane = 0; lane < laneCount; ++lane) found.at[lane] = ((from[lane] + plus) & mask) | window;
    for (int lane = 0; lane < laneCount; ++lane) {
      found.low = std::min(found.low, found.at[lane]);
      found.high = std::max(found.high, found.at[lane]);
      found.bits |= found.at[lane];
    }
    return;
  }
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const uint64_t address = ((from[lane] + plus) & mask) | window;
    found.at[lane] = address;
    found.low = std::min(found.low, address);
    found.high = std::max(found.high, address);
    found.bits |= address;
  }
}

void collect(Warp& warp, const Inst* inst, AccessForm form, Addresses& found) {
  constexpr uint64_t offsetBits = (uint64_t{1} << windowShift) - 1;
  const int32_t slot = inst->op[form.address];
  switch (form.kind) {
    case AddressKind::generic:
      return collect(warp, warp.lanes<uint64_t>(slot), inst->imm, ~uint64_t{0}, 0, found);
    case AddressKind::shared:
      return collect(warp, warp.lanes<uint64_t>(slot), inst->imm, offsetBits, sharedWindow, found);
    case AddressKind::shared32:
      return collect(warp, warp.lanes<uint32_t>(slot), inst->imm, 0xffffffff, sharedWindow, found);
    case AddressKind::local:
      return collect(warp, warp.lanes<uint64_t>(slot), inst->imm, offsetBits, localWindow, found);
    case AddressKind::param:
      return collect(warp, warp.lanes<uint64_t>(slot), inst->imm, offsetBits, paramWindow, found);
  }
}

bool contiguous(const Addresses& addresses, uint32_t bytes) {
  if (addresses.high - addresses.low != uint64_t{bytes} * (laneCount - 1)) return false;
  uint64_t different = 0;
  for (int lane = 0; lane < laneCount; ++lane)
    different |= addresses.at[lane] ^ (addresses.low + static_cast<uint64_t>(lane) * bytes);
  return different == 0;
}

// Compilers implement atomic operations on bytes and halves as loads and compare-and-swaps of the 2 or 4 bytes around them, which may reach
// past the end of an allocation. A GPU has memory there because it allocates in larger units, so only the first byte is checked.
std::byte* locateAtomic(Warp& warp, uint64_t address, uint32_t bytes, Access access) {
  if ((bytes != 2 && bytes != 4) || address % bytes != 0 || windowOf(address) == localWindow) return nullptr;
  if (access != Access::update && access != Access::orderedRead) return nullptr;
  const Warp::Span* const span = warp.findSpan(address, 1, writes(access));
  return span ? span->host + (address - span->base) : nullptr;
}

Pattern findPlaces(Warp& warp, const Inst* inst, AccessForm form, uint32_t bytes, Access access, std::byte* (&host)[laneCount]) {
  const bool write = writes(access);
  Addresses addresses;
  collect(warp, inst, form, addresses);
  const bool aligned = (addresses.bits & (bytes - 1)) == 0;
  if (aligned && windowOf(addresses.low) != localWindow) {
    const uint64_t extent = addresses.high - addresses.low + bytes;
    if (const Warp::Span* span = extent >> windowShift ? nullptr : warp.findSpan(addresses.low, extent, write)) {
      std::byte* const base = span->host + (addresses.low - span->base);
      if (warp.active == ~0u) {
        if (contiguous(addresses, bytes)) {
          host[0] = base;
          return Pattern::contiguous;
        }
        for (int lane = 0; lane < laneCount; ++lane) host[lane] = base + (addresses.at[lane] - addresses.low);
        return Pattern::scattered;
      }
      for (uint32_t left = warp.active; left; left &= left - 1) {
        const int lane = __builtin_ctz(left);
        host[lane] = base + (addresses.at[lane] - addresses.low);
      }
      return Pattern::scattered;
    }
  }
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    host[lane] = locateAtomic(warp, addresses.at[lane], bytes, access);
    if (!host[lane]) host[lane] = warp.locate(inst, lane, addresses.at[lane], bytes, bytes, write);
    if (!host[lane]) return Pattern::failed;
  }
  return Pattern::scattered;
}

bool checked(Warp& warp, const Inst* inst, AccessForm form, Pattern pattern, uint32_t bytes, Access access,
             std::byte* const (&host)[laneCount]) {
  if (form.orders) warp.block().check()->ordered();
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    const std::byte* place = pattern == Pattern::contiguous ? host[0] + size_t{bytes} * lane : host[lane];
    if (!warp.check(inst, lane, place, bytes, access)) return false;
  }
  return true;
}

}  // namespace

Pattern resolve(Warp& warp, const Inst* inst, AccessForm form, uint32_t bytes, Access access,
                std::byte* (&host)[laneCount]) {
  const Pattern pattern = findPlaces(warp, inst, form, bytes, access, host);
  if (!warp.block().check() || access == Access::write || pattern == Pattern::failed) return pattern;
  return checked(warp, inst, form, pattern, bytes, access, host) ? pattern : Pattern::failed;
}

}  // namespace vgpu::emulator
