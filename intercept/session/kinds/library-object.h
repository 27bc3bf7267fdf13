#pragma once

#include <kj/common.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "intercept/session/kinds/head.h"
#include "vgpu/api/library.h"

namespace vgpu::client {

// The argument block of a call (vgpu/api/library.h). Most are small and need no allocation.
class ArgumentBlock {
 public:
  explicit ArgumentBlock(size_t size = 0) : size(size) {
    if (size > sizeof few) many = std::make_unique_for_overwrite<std::byte[]>(size);
  }
  std::span<std::byte> bytes() { return {many ? many.get() : few.data(), size}; }
  std::span<const std::byte> bytes() const { return {many ? many.get() : few.data(), size}; }
  kj::ArrayPtr<const kj::byte> data() const { return kj::arrayPtr(bytes().data(), size).asBytes(); }  // for frames

 private:
  size_t size;
  std::unique_ptr<std::byte[]> many;
  std::array<std::byte, 48> few;
};

// An object of a library that has a face. As in the library, two threads must not change it at the same time.
class LibraryObject {
 public:
  // Digests of the call that made the object or of its settings: `deciding` of what decides whether a call succeeds, `exact` of everything.
  struct Digests {
    uint64_t deciding = 0, exact = 0;
  };

  // `place`: the memory that contains the handle: the program's, or ours, whose address the program has, and which is passed to `end` when
  // the object ends; null if the program has the virtual handle itself.
  LibraryObject(uint8_t type, Digests made, void* place, void (*end)(void*))
      : type(type), place(place), ours(end == nullptr ? nullptr : place, end), deciding(made.deciding), exact(made.exact) {}

  const uint8_t type;  // index in api::objectTypes
  void* const place;
  std::unique_ptr<void, void (*)(void*)> ours;
  std::array<std::atomic<uint64_t>, api::memberCount> members{};

  // A call that made the object or changed a setting. `key`: identifies the setting.
  struct Call {
    uint64_t key = 0;
    Digests digests;
    const api::LibraryEntry* row = nullptr;
    uint32_t hostMask = 0;
    ArgumentBlock block;
  };
  // A description that the worker need not have before its first use: how and where to make it.
  struct Later {
    Call made;
    unsigned device = 0;
    uint64_t context = 0;  // with which it ends
  };
  std::optional<Later> later;  // empty: the worker has had it from the start

  // The worker's handle of it; 0 while the worker does not have it.
  uint64_t remote() const { return inWorker.load(std::memory_order_acquire); }
  bool isPending() const { return remote() == 0; }
  // Writes the handle into the settings' calls: it is the first word of each block.
  void nameInCalls(uint64_t handle) {
    for (auto& call : settings)
      if (auto block = call.block.bytes(); block.size() >= sizeof handle) std::memcpy(block.data(), &handle, sizeof handle);
  }
  // The worker has it now, with all settings.
  void isThere(uint64_t handle) { inWorker.store(handle, std::memory_order_release); }  // release: for readers of the calls' blocks

  // Digests of the call that made it and of the latest call for each key: equal for identical objects.
  uint64_t content() const { return deciding.load(std::memory_order_relaxed); }
  uint64_t exactContent() const { return exact.load(std::memory_order_relaxed); }
  // The latest call for each key, in order, for a captured call (captured-settings.h).
  const std::vector<Call>& calls() const { return settings; }
  void set(Call call) {
    Digests change = call.digests;
    auto earlier = std::ranges::find(settings, call.key, &Call::key);
    if (earlier != settings.end()) {
      change.deciding -= earlier->digests.deciding;
      change.exact -= earlier->digests.exact;
      settings.erase(earlier);
    }
    deciding.fetch_add(change.deciding, std::memory_order_relaxed);
    exact.fetch_add(change.exact, std::memory_order_relaxed);
    if (settings.empty()) settings.reserve(usualCalls);
    settings.push_back(std::move(call));
  }

 private:
  static constexpr size_t usualCalls = 6;
  std::vector<Call> settings;
  std::atomic<uint64_t> deciding, exact, inWorker{0};
};

struct LibraryObjectState : ObjectHead {
  std::unique_ptr<LibraryObject> object;

  void reset() { object.reset(); }
};

}  // namespace vgpu::client
