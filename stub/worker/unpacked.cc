#include "stub/worker/unpacked.h"

#include <algorithm>
#include <cstring>

#include "stub/worker/execution.h"

namespace vgpu::stub {

Unpacked::Unpacked(Execution& on, const api::Described& element, kj::ArrayPtr<const kj::byte> data)
    : copy(std::max<size_t>((data.size() + sizeof(uint64_t) - 1) / sizeof(uint64_t), 1)), elements(data.size() / element.bytes) {
  if (data.size() == 0) return;
  std::memcpy(copy.data(), data.begin(), data.size());
  auto bytes = kj::arrayPtr(static_cast<kj::byte*>(static_cast<void*>(copy.data())), data.size());
  api::walkDescribed(element, bytes, [&](const api::DescribedField& field, kj::byte* structure) {
    if (field.what == api::FieldClass::choice) return;  // the driver checks it
    auto value = api::numberAt<uint64_t>(structure, field.offset);
    if (field.what == api::FieldClass::handle) {
      api::putNumber(structure, field.offset, on.real(field.kind, value, field.nullable));
    } else if (!on.ownsMemory(value, field.bytes)) {
      refused = CUDA_ERROR_INVALID_VALUE;
    }
  });
}

}  // namespace vgpu::stub
