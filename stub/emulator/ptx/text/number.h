// Numbers in PTX's notation.
#pragma once

#include <cstdint>

#include "stub/emulator/ptx/text/lexer.h"

namespace vgpu::emulator {

// `0f3F800000`, `0d…`, or a decimal with a point or an exponent.
bool isFloatNumber(const Token&);
uint64_t parseWhole(const Token&);  // throws PtxError
double parseFloat(const Token&);    // exact for `0f…` too: every float is a double; throws PtxError
uint32_t floatBits(const Token&);   // as f32, NaN payloads kept
uint64_t doubleBits(const Token&);  // as f64, NaN payloads kept

}  // namespace vgpu::emulator
