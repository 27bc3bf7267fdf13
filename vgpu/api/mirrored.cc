#include "vgpu/api/mirrored.h"

#include <algorithm>

#include "vgpu/api/number-reader.h"

namespace vgpu::api {

void visitFills(Method method, kj::ArrayPtr<const capnp::word> frame, const FillVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : mirroredOf(method).fills) {
    Place place(numbers.read(field.field));
    if (place.type() != PlaceType::SLAB && place.type() != PlaceType::CALL) continue;
    uint64_t bytes = 1;
    for (bool isFirst = true; NumberField factor : field.bytes) {
      uint64_t number = numbers.read(factor);
      if (__builtin_mul_overflow(bytes, isFirst ? number : std::max<uint64_t>(number, 1), &bytes)) bytes = UINT64_MAX;
      isFirst = false;
    }
    visit(place, bytes);
  }
}

void visitCompletions(Method method, kj::ArrayPtr<const capnp::word> frame, const CompletionVisitor& visit) {
  NumberReader numbers(frame);
  for (auto& field : mirroredOf(method).completions) visit(numbers.read(field.field), field);
}

}  // namespace vgpu::api
