#include "vgpu/api/mirrored.h"

#include "vgpu/api/number-reader.h"

namespace vgpu::api {

void visitFills(Method method, kj::ArrayPtr<const capnp::word> frame, const FillVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : mirroredOf(method).fills) {
    Place place(numbers.read(field.field));
    if (place.type() == PlaceType::SLAB || place.type() == PlaceType::CALL) visit(place, numbers.product(field.bytes));
  }
}

void visitCompletions(Method method, kj::ArrayPtr<const capnp::word> frame, const CompletionVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : mirroredOf(method).completions) visit(numbers.read(field.field), field);
}

}  // namespace vgpu::api
