// Loads and stores.
#include <cstring>

#include "stub/emulator/ptx/run/access.h"
#include "stub/emulator/ptx/run/block.h"

namespace vgpu::emulator {
namespace {

struct Wide {
  uint64_t lo, hi;
};

// Extends a value in memory to its register by its signedness.
template <class Reg, class T>
Reg widen(T value) {
  if constexpr (std::is_same_v<T, Wide>)
    return value;
  else if constexpr (std::is_signed_v<T>)
    return static_cast<Reg>(static_cast<std::make_signed_t<Reg>>(value));
  else
    return static_cast<Reg>(value);
}

template <class T>
T read(const std::byte* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

// Accesses that order other accesses, or that other threads must see at once.
template <class T>
T readOrdered(const std::byte* from) {
  if constexpr (std::is_same_v<T, Wide>)
    return read<T>(from);
  else
    return __atomic_load_n(static_cast<const T*>(static_cast<const void*>(from)), __ATOMIC_ACQUIRE);
}
template <class T>
void writeOrdered(std::byte* to, T value) {
  if constexpr (std::is_same_v<T, Wide>)
    std::memcpy(to, &value, sizeof value);
  else
    __atomic_store_n(static_cast<T*>(static_cast<void*>(to)), value, __ATOMIC_RELEASE);
}

template <class T, class Reg, bool Ordered>
const Inst* load(Warp& warp, const Inst* inst) {
  const AccessForm form = AccessForm::of(inst);
  std::byte* host[laneCount];
  const Pattern pattern =
      resolve(warp, inst, form, sizeof(T) * form.elements, Ordered ? Access::orderedRead : Access::read, host);
  if (pattern == Pattern::failed) return nullptr;
  if constexpr (Ordered) polling(warp, host[pattern == Pattern::contiguous ? 0 : warp.firstActive()]);
  const uint32_t step = sizeof(T) * form.elements;
  for (int element = 0; element < form.elements; ++element) {
    Reg* out = warp.lanes<Reg>(inst->op[element]);
    const size_t at = sizeof(T) * static_cast<size_t>(element);
    const auto value = [at](const std::byte* from) {
      return widen<Reg>(Ordered ? readOrdered<T>(from + at) : read<T>(from + at));
    };
    if (pattern == Pattern::contiguous) {
      if (!Ordered && form.elements == 1) {
        for (int lane = 0; lane < laneCount; ++lane) out[lane] = widen<Reg>(read<T>(host[0] + sizeof(T) * lane));
      } else {
        for (int lane = 0; lane < laneCount; ++lane) out[lane] = value(host[0] + size_t{step} * lane);
      }
    } else if (warp.active == ~0u) {
      for (int lane = 0; lane < laneCount; ++lane) out[lane] = value(host[lane]);
    } else {
      for (uint32_t left = warp.active; left; left &= left - 1)
        out[__builtin_ctz(left)] = value(host[__builtin_ctz(left)]);
    }
  }
  return inst + 1;
}

// Checks a plain write, lane after lane, together with the write itself: writing the value that is already there races with nothing.
template <class T, class Reg>
bool checkWrites(Warp& warp, const Inst* inst, AccessForm form, Pattern pattern, std::byte* const (&host)[laneCount]) {
  const auto count = static_cast<size_t>(form.elements);
  for (uint32_t left = warp.active; left; left &= left - 1) {
    const int lane = __builtin_ctz(left);
    T values[8];
    for (size_t i = 0; i < count; ++i)
      values[i] = static_cast<T>(warp.lanes<Reg>(inst->op[form.address + 1 + i])[lane]);
    const size_t bytes = sizeof(T) * count;
    std::byte* const place = pattern == Pattern::contiguous ? host[0] + bytes * lane : host[lane];
    if (!warp.check(inst, lane, place, static_cast<uint32_t>(bytes), Access::write, values)) return false;
    std::memcpy(place, values, bytes);
  }
  return true;
}

template <class T, class Reg, bool Ordered>
const Inst* store(Warp& warp, const Inst* inst) {
  const AccessForm form = AccessForm::of(inst);
  std::byte* host[laneCount];
  const Pattern pattern =
      resolve(warp, inst, form, sizeof(T) * form.elements, Ordered ? Access::orderedWrite : Access::write, host);
  if (pattern == Pattern::failed) return nullptr;
  const uint32_t step = sizeof(T) * form.elements;
  if (!Ordered && warp.block().check() && !checkWrites<T, Reg>(warp, inst, form, pattern, host)) return nullptr;
  for (int element = 0; element < form.elements; ++element) {
    const Reg* in = warp.lanes<Reg>(inst->op[form.address + 1 + element]);
    const size_t at = sizeof(T) * static_cast<size_t>(element);
    const auto put = [at](std::byte* to, Reg value) {
      const auto narrow = static_cast<T>(value);
      if constexpr (Ordered)
        writeOrdered<T>(to + at, narrow);
      else
        std::memcpy(to + at, &narrow, sizeof narrow);
    };
    if (pattern == Pattern::contiguous) {
      if (!Ordered && form.elements == 1) {
        std::byte* const to = host[0];
        for (int lane = 0; lane < laneCount; ++lane) put(to + sizeof(T) * lane, in[lane]);
      } else {
        for (int lane = 0; lane < laneCount; ++lane) put(host[0] + size_t{step} * lane, in[lane]);
      }
    } else {
      for (uint32_t left = warp.active; left; left &= left - 1) put(host[__builtin_ctz(left)], in[__builtin_ctz(left)]);
    }
  }
  return inst + 1;
}

// A kernel parameter at a known offset has the same value for all lanes.
template <class T, class Reg>
const Inst* loadParameter(Warp& warp, const Inst* inst) {
  const Reg value = widen<Reg>(read<T>(warp.block().grid().parameters.data() + inst->imm));
  writeLanes<Reg>(warp, inst->op[0], [value](int) { return value; });
  return inst + 1;
}

template <template <class, class, bool> class Pick, bool Ordered>
Handler pick(uint32_t bytes, bool isSigned, uint32_t registerBytes) {
  const bool wide = registerBytes == 8;
  switch (bytes) {
    case 1:
      if (isSigned) return wide ? Pick<int8_t, uint64_t, Ordered>::run : Pick<int8_t, uint32_t, Ordered>::run;
      return wide ? Pick<uint8_t, uint64_t, Ordered>::run : Pick<uint8_t, uint32_t, Ordered>::run;
    case 2:
      if (isSigned) return wide ? Pick<int16_t, uint64_t, Ordered>::run : Pick<int16_t, uint32_t, Ordered>::run;
      return wide ? Pick<uint16_t, uint64_t, Ordered>::run : Pick<uint16_t, uint32_t, Ordered>::run;
    case 4:
      if (isSigned && wide) return Pick<int32_t, uint64_t, Ordered>::run;
      return wide ? Pick<uint32_t, uint64_t, Ordered>::run : Pick<uint32_t, uint32_t, Ordered>::run;
    case 8:
      return wide ? Pick<uint64_t, uint64_t, Ordered>::run : nullptr;
    case 16:
      return registerBytes == 16 ? Pick<Wide, Wide, Ordered>::run : nullptr;
    default:
      return nullptr;
  }
}

template <class T, class Reg, bool Ordered>
struct PickLoad {
  static constexpr Handler run = load<T, Reg, Ordered>;
};
template <class T, class Reg, bool Ordered>
struct PickStore {
  static constexpr Handler run = store<T, Reg, Ordered>;
};
template <class T, class Reg, bool>
struct PickParameter {
  static constexpr Handler run = loadParameter<T, Reg>;
};

}  // namespace

Handler findLoad(uint32_t bytes, bool isSigned, uint32_t registerBytes, bool ordered) {
  return ordered ? pick<PickLoad, true>(bytes, isSigned, registerBytes)
                 : pick<PickLoad, false>(bytes, isSigned, registerBytes);
}
Handler findStore(uint32_t bytes, uint32_t registerBytes, bool ordered) {
  return ordered ? pick<PickStore, true>(bytes, false, registerBytes)
                 : pick<PickStore, false>(bytes, false, registerBytes);
}
Handler findParameterLoad(uint32_t bytes, bool isSigned, uint32_t registerBytes) {
  return pick<PickParameter, false>(bytes, isSigned, registerBytes);
}

}  // namespace vgpu::emulator
