#include "stub/emulator/ptx/lanes/half-values.h"

#include "stub/emulator/ptx/lanes/floats.h"

namespace vgpu::emulator {

float halfValue(uint16_t bits) { return VGPU_ISA::toFloat(VGPU_ISA::Half{bits}); }
uint16_t halfBits(double value) { return VGPU_ISA::toHalf(value).bits; }
float brainValue(uint16_t bits) { return VGPU_ISA::toFloat(VGPU_ISA::Brain{bits}); }
uint16_t brainBits(double value) { return VGPU_ISA::toBrain(value).bits; }
uint16_t brainSum(uint16_t a, uint16_t b) { return brainBits(VGPU_ISA::addToOdd(brainValue(a), brainValue(b))); }

}  // namespace vgpu::emulator
