#include "stub/worker/unpacked.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "stub/worker/execution.h"

namespace vgpu::stub {

Unpacked::Unpacked(Execution& on, const api::Described& element, kj::ArrayPtr<const kj::byte> data)
    : copy(std::max<size_t>(api::aligned(data.size()) / sizeof(uint64_t), 1)) {
  if (data.size() == 0) return;
  std::memcpy(copy.data(), data.begin(), data.size());
  elements = element.pointsFurther() ? 1 : data.size() / element.bytes;
  auto bytes = kj::arrayPtr(static_cast<kj::byte*>(static_cast<void*>(copy.data())), data.size());
  api::walkDescribed(element, bytes, [&](const api::DescribedField& field, kj::byte* structure, kj::ArrayPtr<kj::byte> part) {
    convert(on, field, structure, part);
  });
}

void Unpacked::convert(Execution& on, const api::DescribedField& field, kj::byte* structure, kj::ArrayPtr<kj::byte> part) {
  switch (field.what) {
    case api::FieldClass::parameters: return convertParameters(on, field, structure, part);
    case api::FieldClass::handle:
      return api::putNumber(structure, field.offset, on.real(field.kind, api::numberAt<uint64_t>(structure, field.offset), field.nullable));
    case api::FieldClass::choice:
    case api::FieldClass::reserved: return;  // the driver looks itself
    case api::FieldClass::memory:
      if (!on.ownsMemory(api::numberAt<uint64_t>(structure, field.offset), field.bytes)) refused = CUDA_ERROR_INVALID_VALUE;
      return;
    default:
      if (part.size() != 0) api::putNumber(structure, field.offset, std::bit_cast<uint64_t>(part.begin()));
  }
}

// The driver reads as many bytes as the kernel has parameters. They come before the kernel's handle, which is the virtual one still.
void Unpacked::convertParameters(Execution& on, const api::DescribedField& field, kj::byte* structure, kj::ArrayPtr<kj::byte> part) {
  auto function = on.functions.find(api::numberAt<uint64_t>(structure, field.functionOffset));
  if (function == on.functions.end() || part.size() < function->second.parameterBytes) refused = CUDA_ERROR_INVALID_VALUE;
  auto& extra = extras.emplace_front(Extra{part.size(), {}});
  extra.list = {CU_LAUNCH_PARAM_BUFFER_POINTER, part.begin(), CU_LAUNCH_PARAM_BUFFER_SIZE, &extra.bytes, CU_LAUNCH_PARAM_END};
  api::putNumber(structure, field.offset, uint64_t{0});
  api::putNumber(structure, field.extraOffset, part.size() == 0 ? uint64_t{0} : std::bit_cast<uint64_t>(extra.list.data()));
}

}  // namespace vgpu::stub
