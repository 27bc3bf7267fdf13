// Special registers: read anew at each use.
#include "stub/emulator/ptx/run/special.h"

#include "stub/emulator/ptx/decode/decoder.h"

namespace vgpu::emulator {

Value readSpecial(Decoder& decoder, std::string_view name) {
  const SpecialRow* row = findSpecial(name);
  if (!row) return {};
  const Value value = decoder.build().reg(row->bytes);
  decoder.build().add(row->handler, {value}, {});
  return value;
}

Value widenSpecial(Decoder& decoder, Value value) {
  const Value wide = decoder.build().reg(8);
  decoder.build().lane("extend.u32", wide, {value});
  return wide;
}

}  // namespace vgpu::emulator
