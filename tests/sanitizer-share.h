// Under a sanitizer, which makes programs ten times slower, a long test does only 1/sanitizerShare of its steps, but some of each kind.
#pragma once

namespace vgpu {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr unsigned sanitizerShare = 7;  // odd, so that steps of this size reach every bit of a byte
#else
inline constexpr unsigned sanitizerShare = 1;
#endif

}  // namespace vgpu
