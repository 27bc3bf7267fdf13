#include "stub/emulator/memory/span.h"

#include <algorithm>
#include <cstring>

#include "stub/emulator/driver/casts-unsafe.h"

namespace vgpu::emulator::api {

MemorySpan MemorySpan::ofHost(const void* pointer, uint64_t bytes) {
  MemorySpan span;
  span.pieces.push_back({static_cast<std::byte*>(const_cast<void*>(pointer)), bytes, nullptr});
  span.length = bytes;
  span.isPageable = true;
  return span;
}

MemorySpan MemorySpan::ofDevice(const AddressSpace& space, uint64_t address, uint64_t bytes, uint64_t devices) {
  std::optional<std::vector<Piece>> pieces = space.resolve(address, bytes, devices);
  std::optional<Mapping> mapping = space.find(address);
  if (!pieces || !mapping)
    refuse(CUDA_ERROR_INVALID_VALUE, "the range is not completely in mapped memory: " + space.describe(address));
  MemorySpan span;
  span.pieces = std::move(*pieces);
  span.space = &space;
  span.address = address;
  span.devices = devices;
  span.length = bytes;
  span.onlyRead = mapping->kind == MappingKind::registered && mapping->writers == 0;
  span.owner = mapping->hostKind() ? nullptr : mapping->device;
  return span;
}

MemorySpan MemorySpan::ofEither(const AddressSpace& space, uint64_t address, uint64_t bytes, uint64_t devices) {
  if (space.find(address)) return ofDevice(space, address, bytes, devices);
  if (space.isDeviceAddress(address)) refuse(CUDA_ERROR_INVALID_VALUE, space.describe(address));
  return ofHost(asHostPointer(address), bytes);
}

uint64_t MemorySpan::deviceBit() const { return owner != nullptr ? owner->bit() : 0; }

MemorySpan MemorySpan::current() const {
  MemorySpan span = *this;
  if (space == nullptr) return span;
  if (std::optional<std::vector<Piece>> now = space->resolve(address, length, devices)) span.pieces = std::move(*now);
  return span;
}

MemorySpan MemorySpan::ofCopy(const MemorySpan& source) {
  auto buffer = std::make_shared<std::vector<std::byte>>(source.bytes());
  struct Keeper : HostView {
    Keeper(std::shared_ptr<std::vector<std::byte>> bytes)
        : HostView(bytes->data(), bytes->size(), false), bytes(bytes) {}
    std::shared_ptr<std::vector<std::byte>> bytes;
  };
  MemorySpan span;
  span.pieces.push_back({buffer->data(), buffer->size(), std::make_shared<Keeper>(buffer)});
  span.length = source.bytes();
  copyBytes(span, 0, source, 0, source.bytes());
  return span;
}

void copyBytes(const MemorySpan& to, uint64_t toOffset, const MemorySpan& from, uint64_t fromOffset, uint64_t bytes) {
  to.forEach(toOffset, bytes, [&](std::byte* target, uint64_t part) {
    from.forEach(fromOffset, part, [&](const std::byte* source, uint64_t length) {
      std::memmove(target, source, length);
      target += length;
    });
    fromOffset += part;
  });
}

void fillBytes(const MemorySpan& to, uint64_t offset, uint64_t bytes, uint32_t value, unsigned valueBytes) {
  to.forEach(offset, bytes, [&](std::byte* target, uint64_t part) {
    if (valueBytes == 1) {
      std::memset(target, static_cast<int>(value), part);
      return;
    }
    // Pieces begin and end at multiples of the value's size, because bases and offsets are checked for alignment.
    for (uint64_t at = 0; at < part; at += valueBytes) std::memcpy(target + at, &value, valueBytes);
  });
}

}  // namespace vgpu::emulator::api
