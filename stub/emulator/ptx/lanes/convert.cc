// Conversions between integers, and from integers to float32 and float64.
#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator::VGPU_ISA {
namespace {

template <class To, class From>
To convert(From a) {
  return static_cast<To>(a);
}

template <class To>
constexpr __int128 leastValue = std::is_signed_v<To> ? -(__int128{1} << (sizeof(To) * 8 - 1)) : __int128{0};
template <class To>
constexpr __int128 mostValue = (__int128{1} << (sizeof(To) * 8 - (std::is_signed_v<To> ? 1 : 0))) - 1;
template <class To, class From>
To saturate(From a) {
  const __int128 wide = a;
  return static_cast<To>(wide < leastValue<To> ? leastValue<To> : wide > mostValue<To> ? mostValue<To> : wide);
}

template <class To, class From>
void pair(Registry& r, const char* plain, const char* saturated) {
  r.add("cvt", plain, row<convert<To, From>>());
  r.add("cvt.sat", saturated, row<saturate<To, From>>());
}

#define VGPU_FROM(to, toType, from, fromType) pair<toType, fromType>(r, #to "." #from, #to "." #from)
#define VGPU_TO(to, type)             \
  VGPU_FROM(to, type, u8, uint8_t);   \
  VGPU_FROM(to, type, u16, uint16_t); \
  VGPU_FROM(to, type, u32, uint32_t); \
  VGPU_FROM(to, type, u64, uint64_t); \
  VGPU_FROM(to, type, s8, int8_t);    \
  VGPU_FROM(to, type, s16, int16_t);  \
  VGPU_FROM(to, type, s32, int32_t);  \
  VGPU_FROM(to, type, s64, int64_t)

#define VGPU_TO_FLOAT(to, type)                                \
  r.add("cvt.rn", #to ".u8", row<convert<type, uint8_t>>());   \
  r.add("cvt.rn", #to ".u16", row<convert<type, uint16_t>>()); \
  r.add("cvt.rn", #to ".u32", row<convert<type, uint32_t>>()); \
  r.add("cvt.rn", #to ".u64", row<convert<type, uint64_t>>()); \
  r.add("cvt.rn", #to ".s8", row<convert<type, int8_t>>());    \
  r.add("cvt.rn", #to ".s16", row<convert<type, int16_t>>());  \
  r.add("cvt.rn", #to ".s32", row<convert<type, int32_t>>());  \
  r.add("cvt.rn", #to ".s64", row<convert<type, int64_t>>())

}  // namespace

void addConvertOps(Registry& r) {
  VGPU_TO(u8, uint8_t);
  VGPU_TO(u16, uint16_t);
  VGPU_TO(u32, uint32_t);
  VGPU_TO(u64, uint64_t);
  VGPU_TO(s8, int8_t);
  VGPU_TO(s16, int16_t);
  VGPU_TO(s32, int32_t);
  VGPU_TO(s64, int64_t);
  VGPU_TO_FLOAT(f32, float);
  VGPU_TO_FLOAT(f64, double);
}

}  // namespace vgpu::emulator::VGPU_ISA
