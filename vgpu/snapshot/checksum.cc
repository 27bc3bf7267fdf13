#include "vgpu/snapshot/checksum.h"

#include <fmt/format.h>
#include <xxhash.h>

namespace vgpu::snapshot {

namespace {
std::string textOf(XXH128_hash_t hash) { return fmt::format("{:016x}{:016x}", hash.high64, hash.low64); }
}  // namespace

struct alignas(64) Checksum::State {
  XXH3_state_t xxh;
};

Checksum::Checksum() : state(std::make_unique<State>()) { XXH3_128bits_reset(&state->xxh); }
Checksum::Checksum(Checksum&&) noexcept = default;
Checksum::~Checksum() = default;

void Checksum::add(std::span<const std::byte> bytes) {
  if (!bytes.empty()) XXH3_128bits_update(&state->xxh, bytes.data(), bytes.size());
}

std::string Checksum::text() const { return textOf(XXH3_128bits_digest(&state->xxh)); }

std::string checksumOf(std::span<const std::byte> bytes) { return textOf(XXH3_128bits(bytes.data(), bytes.size())); }

}  // namespace vgpu::snapshot
