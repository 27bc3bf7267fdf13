#include "intercept/session/packed.h"

#include <cstring>

#include "intercept/session/copy/engine.h"
#include "vgpu/wire/segment.h"

namespace vgpu::client {

namespace {

CUresult convert(Thread& thread, const api::DescribedField& field, kj::byte* structure) {
  bool isValid = false;
  switch (field.what) {
    case api::FieldClass::handle: {
      auto handle = api::numberAt<uint64_t>(structure, field.offset);
      if (CUresult bad = thread.resolve(field.kind, field.nullable, handle)) return bad;
      api::putNumber(structure, field.offset, handle);
      return CUDA_SUCCESS;
    }
    case api::FieldClass::choice:
      isValid = api::hasOneOf(field.values, structure, field.offset);
      break;
    case api::FieldClass::memory:
      isValid = ownsMemory(thread.session, api::numberAt<uint64_t>(structure, field.offset), field.bytes);
  }
  return isValid ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

}  // namespace

CUresult Packed::add(Thread& thread, const api::Described& element, const void* source, uint64_t count, bool optional) {
  if (source == nullptr) return optional || count == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (count > maxFrameBytes / element.bytes) return CUDA_ERROR_OUT_OF_MEMORY;
  const auto* begin = static_cast<const kj::byte*>(source);
  bytes.assign(begin, begin + count * element.bytes);
  CUresult result = CUDA_SUCCESS;
  api::walkDescribed(element, kj::arrayPtr(bytes.data(), bytes.size()),
                     [&](const api::DescribedField& field, kj::byte* structure) {
                       if (result == CUDA_SUCCESS) result = convert(thread, field, structure);
                     });
  return result;
}

}  // namespace vgpu::client
