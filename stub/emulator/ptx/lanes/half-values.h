// Half and bfloat16 values for code outside the lane operations.
#pragma once

#include <cstdint>

namespace vgpu::emulator {

float halfValue(uint16_t bits);
uint16_t halfBits(double value);  // rounded to nearest even
float brainValue(uint16_t bits);
uint16_t brainBits(double value);
uint16_t brainSum(uint16_t a, uint16_t b);  // rounded once

}  // namespace vgpu::emulator
