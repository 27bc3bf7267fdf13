#include "stub/emulator/ptx/text/error.h"

namespace vgpu::emulator {

PtxError::PtxError(Kind k, int l, std::string message)
    : std::runtime_error(l ? "PTX line " + std::to_string(l) + ": " + message : std::move(message)), kind(k), line(l) {}

}  // namespace vgpu::emulator
