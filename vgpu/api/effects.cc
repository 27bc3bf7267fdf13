#include "vgpu/api/effects.h"

#include <algorithm>

#include "vgpu/api/flat-frame.h"

namespace vgpu::api {

namespace {

class NumberReader : public FlatReader {
 public:
  using FlatReader::FlatReader;
  uint64_t read(NumberField field) const { return field.bytes == 8 ? get<uint64_t>(field.offset) : get<uint32_t>(field.offset); }
};

}  // namespace

void visitEffects(Method method, kj::ArrayPtr<const capnp::word> frame, const EffectVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : infoOf(method).effects)
    visit({field.effect, field.kind, numbers.read({field.offset, 8}), field.parent, field.nullable});
}

bool setsTheSame(Method method, kj::ArrayPtr<const capnp::word> later, kj::ArrayPtr<const capnp::word> earlier) {
  NumberReader a(later), b(earlier);
  return std::ranges::all_of(infoOf(method).keys, [&](NumberField key) { return a.read(key) == b.read(key); });
}

}  // namespace vgpu::api
