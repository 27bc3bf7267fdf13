#include "intercept/session/packed.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "intercept/session/copy/engine.h"
#include "intercept/session/kernel-parameters.h"
#include "vgpu/wire/segment.h"

namespace vgpu::client {

namespace {

constexpr uint64_t mostBytes = maxFrameBytes;

const void* pointerAt(const kj::byte* structure, uint32_t offset) {
  return std::bit_cast<const void*>(api::numberAt<uint64_t>(structure, offset));
}

}  // namespace

CUresult Packed::add(Thread& caller, const api::Described& element, const void* source, uint64_t count, bool optional) {
  thread = &caller;
  if (source == nullptr) return optional || count == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  return append(element, source, count);
}

CUresult Packed::extend(uint64_t count, uint64_t elementBytes, size_t& at) {
  uint64_t more;
  at = api::aligned(bytes.size());
  if (__builtin_mul_overflow(count, elementBytes, &more) || more > mostBytes - std::min<uint64_t>(at, mostBytes))
    return CUDA_ERROR_OUT_OF_MEMORY;
  bytes.resize(at + more);
  return CUDA_SUCCESS;
}

CUresult Packed::append(const api::Described& element, const void* source, uint64_t count) {
  size_t at;
  if (CUresult error = extend(count, element.bytes, at)) return error;
  if (count != 0) std::memcpy(bytes.data() + at, source, count * element.bytes);
  if (element.fields.empty()) return CUDA_SUCCESS;
  for (size_t end = at + count * element.bytes; at < end; at += element.bytes)
    for (auto& field : element.fields)
      if (api::isThere(field, bytes.data() + at))
        if (CUresult bad = convert(field, at)) return bad;
  return CUDA_SUCCESS;
}

// `structure`: where it lies in `bytes`, which grow with what it points to.
CUresult Packed::convert(const api::DescribedField& field, size_t structure) {
  kj::byte* at = bytes.data() + structure;
  switch (field.what) {
    case api::FieldClass::handle: {
      auto handle = api::numberAt<uint64_t>(at, field.offset);
      if (CUresult bad = thread->resolve(field.kind, field.nullable, handle)) return bad;
      api::putNumber(at, field.offset, handle);
      return CUDA_SUCCESS;
    }
    case api::FieldClass::reserved: {
      bool isZero = std::all_of(at + field.offset, at + field.offset + field.bytes, [](kj::byte byte) { return byte == 0; });
      return isZero ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    case api::FieldClass::choice:
      return api::hasOneOf(field.values, at, field.offset) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case api::FieldClass::memory: {
      bool isOurs = ownsMemory(thread->session, api::numberAt<uint64_t>(at, field.offset), field.bytes);
      return isOurs ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    default: return convertPointer(field, structure);
  }
}

CUresult Packed::convertPointer(const api::DescribedField& field, size_t structure) {
  if (field.what == api::FieldClass::parameters) return appendParameters(field, structure);
  const kj::byte* at = bytes.data() + structure;
  const void* source = pointerAt(at, field.offset);
  const bool isText = field.what == api::FieldClass::text;
  uint64_t count = isText ? 0 : api::countOf(field, at);
  if (source == nullptr) return field.nullable || (!isText && count == 0) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
  if (isText) count = std::strlen(static_cast<const char*>(source)) + 1;
  static constexpr api::Described character{1, {}};
  const api::Described& element = isText ? character : *field.element;
  api::putNumber(bytes.data() + structure, field.offset, count * element.bytes);
  return append(element, source, count);
}

CUresult Packed::appendParameters(const api::DescribedField& field, size_t structure) {
  kj::byte* at = bytes.data() + structure;
  auto* known = thread->session.handles.find<api::Kind::FUNCTION>(api::numberAt<uint64_t>(at, field.functionOffset));
  if (known == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  const FunctionLayout& function = *known->layout;
  KernelParameters parameters;
  auto pointers = std::bit_cast<void**>(api::numberAt<uint64_t>(at, field.offset));
  auto extra = std::bit_cast<void**>(api::numberAt<uint64_t>(at, field.extraOffset));
  if (CUresult bad = parameters.check(function, pointers, extra)) return bad;
  api::putNumber(at, field.extraOffset, uint64_t{0});
  api::putNumber(at, field.offset, uint64_t{function.parameterBytes});
  size_t block;
  if (CUresult error = extend(function.parameterBytes, 1, block)) return error;
  parameters.gather(function, bytes.data() + block);
  return CUDA_SUCCESS;
}

}  // namespace vgpu::client
