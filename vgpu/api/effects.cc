#include "vgpu/api/effects.h"

#include <algorithm>

#include "vgpu/api/handle.h"
#include "vgpu/api/number-reader.h"
#include "vgpu/api/place.h"

namespace vgpu::api {

namespace {

void visitList(const EffectField& list, kj::ArrayPtr<const kj::byte> data, const EffectVisitor& visit) {
  walkDescribed(*list.elements, data, [&](const DescribedField& field, const kj::byte* structure) {
    if (field.what != FieldClass::handle) return;
    auto effect = field.kind == list.kind ? list.effect : Effect::uses;
    visit({effect, field.kind, numberAt<uint64_t>(structure, field.offset), list.parent, field.nullable});
  });
}

}  // namespace

void visitEffects(Method method, kj::ArrayPtr<const capnp::word> frame, const EffectVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : infoOf(method).effects) {
    if (field.elements != nullptr) {
      visitList(field, numbers.list(field.offset), visit);
      continue;
    }
    uint64_t handle = numbers.read({field.offset, 8});
    if (!field.place || handleKind(handle) == static_cast<unsigned>(field.kind))
      visit({field.effect, field.kind, handle, field.parent, field.nullable});
  }
}

void visitSlabs(Method method, kj::ArrayPtr<const capnp::word> frame, const SlabVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : infoOf(method).slabs) {
    uint64_t slab = numbers.read(field.field);
    if (field.place && Place(slab).type() != PlaceType::SLAB) continue;
    visit(field.place ? Place(slab).value() : slab, numbers.product(field.bytes));
  }
}

bool setsTheSame(Method method, kj::ArrayPtr<const capnp::word> later, kj::ArrayPtr<const capnp::word> earlier) {
  NumberReader a(later), b(earlier);
  return std::ranges::all_of(infoOf(method).keys, [&](NumberField key) { return a.read(key) == b.read(key); });
}

}  // namespace vgpu::api
