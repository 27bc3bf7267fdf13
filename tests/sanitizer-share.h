// Under a sanitizer, which takes ten times as long, a long test does one in so many of what it does otherwise: each kind of it still.
#pragma once

namespace vgpu {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr unsigned sanitizerShare = 7;  // odd, so that steps of that size come to every bit of a byte
#else
inline constexpr unsigned sanitizerShare = 1;
#endif

}  // namespace vgpu
