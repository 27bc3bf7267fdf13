#include "stub/worker/blob.h"

#include <algorithm>

namespace vgpu::stub {

namespace {
constexpr std::byte nothing{0};
}

std::span<const std::byte> Blob::bytes() const {
  if (stored) return stored->bytes();
  if (own.empty()) return {&nothing, 0};
  return std::span(own).first(own.size() - 1);
}

const ImageFacts& Blob::facts() const {
  if (stored) return stored->facts();
  if (!known) known = findFacts(bytes());
  return *known;
}

void Blob::resize(uint64_t bytes) {
  own.resize(bytes + 1);
  known.reset();
}

void Blob::write(uint64_t offset, std::span<const std::byte> piece) {
  std::copy(piece.begin(), piece.end(), own.begin() + static_cast<ptrdiff_t>(offset));
  known.reset();
}

}  // namespace vgpu::stub
